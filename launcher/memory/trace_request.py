"""What a trace runs: an architecture's configuration and everything that changes a byte. No torch."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from launcher.errors import CannotTell, Problem
from launcher.memory.setting import Setting


@dataclass(frozen=True, kw_only=True)
class TraceRequest:
    """One rank's training run, as a recipe's sections say it; `config` is the content of a config.json.

    `kernels`: `cuda` counts what CUDA kernels keep, `cpu` what this machine's own do. `padded`: rows of
    a batch have different lengths, so masks are really used. `optim` is the recipe's. `card_bytes`: what a
    rank's card has; None: whatever is needed.
    """

    config: Mapping[str, Any]
    task: Literal["classification", "causal_lm"] = "causal_lm"
    num_labels: int = 2
    adapter: Mapping[str, Any] = field(default_factory=lambda: {"method": "full"})
    micro_batch: int = 1
    seq_len: int = 128
    accumulation_steps: int = 1
    weights_dtype: str = "float32"
    trainable_dtype: str = "float32"
    precision: str = "fp32"
    attention: str = "sdpa"
    checkpointing: bool = False
    loss_chunk_bytes: int | None = None
    optim: Literal["adamw_torch_fused", "adamw_torch"] = "adamw_torch_fused"
    quantisation: Literal["none", "nf4", "fp4"] = "none"
    double_quant: bool = False
    kbit_upcast: bool = False
    max_grad_norm: float = 1.0
    backend: str = "single_gpu"
    backend_options: Mapping[str, Any] = field(default_factory=dict)
    num_ranks: int = 1
    eval_batch: int = 0
    padded: bool = False
    kernels: Literal["cuda", "cpu"] = "cuda"
    compute_capability: tuple[int, int] = (8, 0)
    card_bytes: int | None = None

    def to_json(self) -> str:
        """For the process that traces."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "TraceRequest":
        """The reverse of `to_json`."""
        found = json.loads(text)
        return TraceRequest(**found | {"compute_capability": tuple(found["compute_capability"])})


_OPTIMIZERS = {
    "adamw_fused": "adamw_torch_fused",
    "adamw_foreach": "adamw_torch",
}


def request_of(
    setting: Setting,
    config: Mapping[str, Any],
    *,
    adapter: Mapping[str, Any],
    backend_options: Mapping[str, Any] | None = None,
) -> TraceRequest:
    """The trace of an estimate's setting. Raises CannotTell for what the launcher's own step lacks."""
    _require_own_step(setting)
    classifies = setting.shape.task == "classification"
    chunk = 4 * setting.shape.vocab_size * setting.loss_chunk_tokens if setting.loss == "chunked" else None
    return TraceRequest(
        config=config,
        task="classification" if classifies else "causal_lm",
        num_labels=setting.shape.num_labels or 2,
        adapter=adapter,
        micro_batch=setting.micro_batch,
        seq_len=setting.seq_len,
        accumulation_steps=setting.accumulation_steps,
        weights_dtype=setting.weights_dtype,
        trainable_dtype=setting.trainable_dtype,
        precision="fp32" if setting.pure else setting.precision,
        attention={"flash": "sdpa"}.get(setting.attention, setting.attention),
        checkpointing=setting.checkpointing == "full",
        loss_chunk_bytes=chunk,
        optim=_OPTIMIZERS[setting.optimizer],  # type: ignore[arg-type]
        quantisation=setting.quantisation,  # type: ignore[arg-type]
        double_quant=setting.double_quant,
        kbit_upcast=setting.kbit_upcast,
        backend=setting.backend,
        backend_options=backend_options or {},
        num_ranks=setting.num_ranks,
        eval_batch=setting.eval_batch,
        padded=setting.variable_length,
    )


def _require_own_step(setting: Setting) -> None:
    """The trace runs this project's step: other losses, optimizers and quantisers are not in it."""
    foreign = {
        "loss": setting.loss if setting.loss not in ("plain", "chunked") else "",
        "optimizer": setting.optimizer if setting.optimizer not in _OPTIMIZERS else "",
        "quantisation": setting.quantisation if setting.quantisation not in ("none", "nf4", "fp4") else "",
        "checkpointing": "selective" if setting.checkpointing == "selective" else "",
    }
    for key, value in foreign.items():
        if value:
            raise CannotTell(
                Problem(
                    where=f"trace, {key}",
                    what=f"{value} is not part of the step that is traced",
                    right="full or no checkpointing, plain or chunked loss, AdamW, nf4 or fp4",
                    type="launcher plan without --trace",
                )
            )
