"""One training configuration as the memory estimate sees it: every fact that changes a byte."""

from dataclasses import dataclass, field
from typing import Literal

from launcher.facts import ShardingFacts
from launcher.models.shape import ModelShape

Checkpointing = Literal["none", "selective", "full"]
Attention = Literal["eager", "sdpa", "flash"]
LossKind = Literal["plain", "fused", "chunked", "linear_fused"]
Optimizer = Literal[
    "adamw_fused", "adamw_foreach", "adamw_loop", "adamw_8bit", "paged_adamw", "paged_adamw_8bit",
    "adafactor", "sgd", "sgd_momentum",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """The parameters a method adds: `num_params` trained elements beside `num_modules` layers.

    `rank` is LoRA's; `virtual_tokens` those of prefix, prompt and P-tuning; `targets` the linear layers
    of one block that an adapter sits beside, by their path in the block.
    """

    method: str
    num_params: int
    rank: int = 0
    targets: tuple[str, ...] = ()
    virtual_tokens: int = 0
    dropout: float = 0.0
    head_copy_params: int = 0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What decides the memory of one rank. Sizes in rows, tokens and elements.

    `weights_dtype` is the type that frozen (or all) weights are held in, `trainable_dtype` that of what is
    trained; `precision` is autocast's type (`fp32`: none), `pure`: no autocast, compute in the weights'
    type; `autocast_cache`: torch keeps cast weights until the context ends. `sharding_kind` names how
    parameters are divided: fsdp1 and fsdp2 gather a block at a time. Full training whose
    `weights_dtype` is half and `trainable_dtype` float32 keeps separate masters.

    `trained_params`: elements of the model itself that train where a part of it is frozen; `graph_blocks`:
    blocks from the lowest one that trains upwards: those below keep nothing for a backward pass.

    `checkpoint_copy`: host memory holds what a checkpoint is written from while training goes on.

    What differs between harnesses; the defaults are this launcher's own step: `evaluates`, `saves`: there
    are evaluations and checkpoints; `loads_whole`: FSDP2 divides a model that is on the card already;
    `save_gathers`: a save materialises the whole state on the card; `output_held`: the caller keeps the
    model's output alive while backward runs, as the Trainer does; `logits_upcast`: the loss works on an
    fp32 copy; `fused_norm`: one kernel for norm and rotation, which saves its half-precision input;
    `repeats_kv`: key and value are copied to every query head; `reentrant`: the older checkpointing;
    `optimizer_in_backward`: a gradient is used up as it comes; `gradients_kept`: they stay between steps;
    `adapters_apart`: FSDP1 wraps adapters on their own; `gathered_dtype`: the type that FSDP gathers in
    (empty: the weights' own); `context_bytes`: of the driver and its libraries (0: the default of
    `reserved`); `cublas_workspace_bytes`: of one thread (33,554,432 from compute capability 9.0).
    """

    shape: ModelShape
    method: str
    adapter: Adapter | None
    micro_batch: int
    seq_len: int
    weights_dtype: Literal["float32", "bfloat16", "float16"]
    trained_params: int | None = None
    graph_blocks: int | None = None
    trainable_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    precision: Literal["fp32", "bf16", "fp16"] = "bf16"
    pure: bool = False
    quantisation: Literal["none", "nf4", "fp4", "int8", "gptq4", "gptq8"] = "none"
    double_quant: bool = False
    kbit_upcast: bool = False
    optimizer: Optimizer = "adamw_fused"
    checkpointing: Checkpointing = "full"
    attention: Attention = "sdpa"
    loss: LossKind = "plain"
    loss_chunk_tokens: int = 0
    checkpoint_copy: bool = False
    backend: str = "single_gpu"
    sharding_kind: Literal["none", "fsdp1", "fsdp2", "zero1", "zero2", "zero3"] = "none"
    sharding: ShardingFacts = field(
        default_factory=lambda: ShardingFacts(optimizer_states=False, gradients=False, parameters=False)
    )
    num_ranks: int = 1
    reduce_bucket_elements: int = 50_000_000
    prefetch_bucket_elements: int = 50_000_000
    reuse_distance_elements: int = 1_000_000_000
    live_elements: int = 1_000_000_000
    persistence_elements: int = 100_000
    accumulation_steps: int = 1
    eval_batch: int = 0
    num_workers: int = 0
    variable_length: bool = False
    autocast_cache: bool = False
    evaluates: bool = True
    saves: bool = True
    loads_whole: bool = True
    save_gathers: bool = False
    output_held: bool = False
    logits_upcast: bool = True
    fused_norm: bool = False
    repeats_kv: bool = False
    reentrant: bool = False
    compiled: bool = False
    optimizer_in_backward: bool = False
    offload_activations: bool = False
    gradients_kept: bool = False
    ddp_bucket_view: bool = True
    adapters_apart: bool = True
    gathered_dtype: Literal["", "float32", "bfloat16", "float16"] = ""
    context_bytes: int = 0
    cublas_workspace_bytes: int = 8_519_680

    @property
    def recomputes(self) -> bool:
        """Whether whole blocks run again in the backward pass, from their inputs."""
        return self.checkpointing == "full"
