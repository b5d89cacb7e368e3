"""The frozen facts that layers hand to one another. Data only: no torch, no files, no decisions."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A value that the planner chose, and why in one line."""

    key: str
    value: Any
    reason: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a rank can use. Bytes are bytes; `device` is `cuda` or `cpu`.

    The sources say what set the number of cores and the memory: the host, a control group, affinity.
    """

    device: str
    num_gpus: int
    gpu_name: str = ""
    gpu_memory_bytes: int = 0
    compute_capability: tuple[int, int] = (0, 0)
    num_cores: int = 1
    host_memory_bytes: int = 0
    torch_version: str = ""
    cpu_has_bf16: bool = False
    cores_source: str = ""
    host_memory_source: str = ""


@dataclass(frozen=True, kw_only=True)
class Starter:
    """Who started this process and what it decided: `python`, `accelerate`, `torchrun`, `deepspeed`.

    `settings` are recipe keys that its own configuration gave by hand.
    """

    name: str
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1
    backend: str | None = None
    config_file: str | None = None
    mixed_precision: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """What a person typed behind `run.py`; `overrides` are `key=value` for the recipe.

    `resume` is `auto`, a checkpoint folder, or None where nothing was said.
    """

    recipe: str
    recipe_was_given: bool = True
    ds: str | None = None
    backend: str | None = None
    name: str | None = None
    resume: str | None = None
    new: bool = False
    plan: str | None = None
    output_dir: str | None = None
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """How one optimizer step is cut: `global_batch_size` = micro x accumulation x ranks, in rows."""

    global_batch_size: int
    micro_batch_size: int
    accumulation_steps: int
    num_ranks: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What will be run, decided once. Every rank verifies `fingerprint`, none plans again."""

    recipe_name: str
    backend: str
    device: str
    step: StepSettings
    precision: str
    weights_dtype: str
    learning_rate: float
    fingerprint: str
    derived: tuple[Derived, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as written to `plan.json`."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ShardingFacts:
    """What a backend divides over its data-parallel ranks."""

    optimizer_states: bool
    gradients: bool
    parameters: bool
    offload_optimizer: bool = False
    offload_parameters: bool = False
