"""The recipe's `training` section: batch, schedule, precision, what is logged and saved when."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from launcher.options import Options

Precision = Literal["auto", "fp32", "bf16", "fp16", "bf16-emulated"]
Scheduler = Literal["linear", "cosine", "constant", "constant_with_warmup", "polynomial", "inverse_sqrt"]
_EVERY = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(step|row|epoch)s?\s*")


class Every(Options):
    """An interval: so many steps, rows or (fractions of) epochs."""

    amount: float = Field(gt=0)
    unit: Literal["steps", "rows", "epochs"]

    def __str__(self) -> str:
        """As it is written in a recipe."""
        return f"{self.amount:g} {self.unit}"

    def in_steps(self, *, rows_per_step: int, steps_per_epoch: int) -> int:
        """The interval in optimizer steps, at least one."""
        factor = {"steps": 1.0, "rows": 1 / rows_per_step, "epochs": float(steps_per_epoch)}[self.unit]
        return max(1, round(self.amount * factor))


def _read_every(value: Any) -> Any:
    """`200`, `200 steps`, `5000 rows`, `0.5 epochs`, `epoch`, or `no`."""
    if isinstance(value, Every) or value is None:
        return value
    if isinstance(value, dict):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return {"amount": value, "unit": "steps"}
    if value in ("no", "never", False):
        return None
    if value == "epoch":
        return {"amount": 1, "unit": "epochs"}
    if match := _EVERY.fullmatch(str(value)):
        return {"amount": float(match.group(1)), "unit": match.group(2) + "s"}
    if re.fullmatch(r"\d+", str(value)):
        return {"amount": int(value), "unit": "steps"}
    raise ValueError("an interval needs its unit: 200 steps, 5000 rows, 0.5 epochs, epoch, or no")


Interval = Annotated[Every | None, BeforeValidator(_read_every)]
Rows = Annotated[int, Field(ge=1)]


def _read_names(value: Any) -> Any:
    """One name, or several with commas between, for the list that they mean."""
    return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_read_names)]


class TrainingOptions(Options):
    """How the model is trained. `global_batch_size` is the truth that no backend changes."""

    global_batch_size: Rows = Field(32, description="Rows in one optimizer step, over all cards.")
    per_device_train_batch_size: Rows | Literal["auto"] = Field(
        "auto", description="Most rows that one card holds at once; accumulation fills up the rest."
    )
    per_device_eval_batch_size: Rows | Literal["auto"] = Field(
        "auto", description="Rows that one card evaluates at once; auto: as in training."
    )
    num_train_epochs: float = Field(3.0, gt=0, description="Passes over the training rows.")
    max_steps: int | None = Field(None, ge=1, description="Stop after this many optimizer steps.")
    learning_rate: float = Field(5e-5, gt=0, description="Highest learning rate.")
    lr_reference_batch_size: Rows | None = Field(
        None,
        description="Batch for which learning_rate was chosen; lr_scaling carries it to global_batch_size.",
    )
    lr_scaling: Literal["none", "linear", "sqrt"] = Field(
        "none", description="How the rate grows with the batch: x k or x sqrt(k)."
    )
    layerwise_lr_decay: float | None = Field(
        None, gt=0, le=1, description="Rate of a layer over that of the layer above it; none: all alike."
    )
    lr_scheduler_type: Scheduler = Field("linear", description="Shape of the rate after the warm-up.")
    warmup: float = Field(0.0, ge=0, description="Below 1: share of all steps; from 1: steps.")
    weight_decay: float = Field(0.0, ge=0, description="Decoupled decay; none on biases and norms.")
    adam_beta1: float = Field(0.9, ge=0, lt=1, description="Decay of the first moment.")
    adam_beta2: float = Field(0.999, ge=0, lt=1, description="Decay of the second moment.")
    adam_epsilon: float = Field(1e-8, gt=0, description="Added to the second moment's root.")
    max_grad_norm: float = Field(1.0, ge=0, description="Gradient norm is clipped here; 0: never.")
    optim: Literal[
        "adamw_torch_fused", "adamw_torch", "sgd", "adafactor", "adamw_8bit", "paged_adamw_8bit"
    ] = Field(
        "adamw_torch_fused",
        description="Optimizer; 8-bit ones by bitsandbytes. Those that need whole tensors are refused where "
        "a backend divides them.",
    )
    seed: int = Field(42, ge=0, description="Seed of order, dropout and new weights.")
    precision: Precision = Field(
        "auto", description="Arithmetic of the step; auto: bf16 where the card has it."
    )
    tf32: bool | Literal["auto"] = Field("auto", description="TF32 for fp32 products, on cards that have it.")
    fp32_modules: Names = Field(
        (), description="Modules, by the end of their name, that compute in fp32 whatever the precision."
    )
    non_finite: Literal["skip", "stop"] = Field(
        "skip", description="A step whose loss or gradients are not finite: left out and counted, or the end."
    )
    max_skipped_steps: Rows = Field(8, description="Most such steps one after another; then the run stops.")
    min_loss_scale: float = Field(
        16.0, gt=0, description="Below this loss scale (fp16) the run stops: other precision is needed."
    )
    activation_checkpointing: bool = Field(False, description="Recompute activations: less memory, slower.")
    loss_chunk_bytes: int | None = Field(
        None, ge=1, description="Most bytes of logits at once (causal LM); none: all of them."
    )
    memory_probe: bool | Literal["auto"] = Field(
        "auto",
        description="Try the longest batch, the optimizer's states, evaluation and a save's gathering before "
        "step 1, without an update; auto: on a GPU.",
    )
    logging_steps: Rows = Field(10, description="Steps between two log lines.")
    eval_steps: Interval = Field(
        None, description="Interval between evaluations; the end is always evaluated."
    )
    save_steps: Interval = Field(None, description="Interval between checkpoints.")
    save_total_limit: Rows | None = Field(2, description="Checkpoints kept; the best one is never deleted.")
    metric_for_best_model: str | None = Field(
        None, description="Evaluation metric that chooses the best model."
    )
    load_best_model_at_end: bool = Field(False, description="Export the best checkpoint instead of the last.")
    early_stopping_patience: Rows | None = Field(
        None, description="Evaluations without a better metric after which the run ends; none: it does not."
    )
    async_save: bool | Literal["auto"] = Field(
        "auto",
        description="Write checkpoints while training goes on; auto: on a card, where host memory allows.",
    )
    resume_from_checkpoint: str | None = Field(None, description="auto, or a checkpoint folder.")
    resume_weights_only: bool = Field(
        False, description="Continue with weights and position, the optimizer's moments started anew."
    )
