"""The decisions of an advice, each with its reason, as they stand in the recipe."""

from dataclasses import dataclass
from typing import Any

from launcher.facts import Machine
from launcher.hardware.catalog import Gpu
from launcher.memory.host import host_memory
from launcher.models.shape import ModelShape
from launcher.plan.fit import Judged
from launcher.plan.levers import BACKEND, OPTIMIZER
from launcher.precision import choose
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a person says: the model, so many rows, the card and how many of it."""

    model: str
    rows: int
    gpu: str
    gpus: int = 1
    task: str | None = None
    train_file: str | None = None
    max_length: int = 512
    ask_hub: bool = False


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One decision: a dotted key, its value and why."""

    key: str
    value: Any
    reason: str


def leaves_card(judged: Judged) -> bool:
    """Whether states or weights are kept in host memory."""
    facts = judged.candidate.setting.sharding
    return facts.offload_optimizer or facts.offload_parameters


def choices(
    situation: Situation,
    recipe: Recipe,
    shape: ModelShape,
    gpu: Gpu,
    machine: Machine,
    best: Judged,
    why_method: str,
) -> tuple[Choice, ...]:
    """In the order in which a person asks."""
    training, setting = recipe.training, best.candidate.setting
    precision, precision_why = choose("auto", machine)
    needed = f"{format_bytes(best.needed_bytes)} of {format_bytes(gpu.usable_bytes)}"
    rate_why = "lora: 5e-5 to 1e-4" if recipe.adapter.method == "lora" else "full: lower it where it jumps"
    found = [
        Choice(key="adapter.method", value=recipe.adapter.method, reason=why_method),
        Choice(key="training.precision", value=precision, reason=precision_why),
        Choice(key="backend.name", value=recipe.backend.name, reason=_backend_why(best, situation)),
        Choice(
            key="training.per_device_train_batch_size",
            value=setting.micro_batch,
            reason=f"needs {needed}, driver and margin counted; the fastest that fits",
        ),
        Choice(
            key="training.activation_checkpointing",
            value=training.activation_checkpointing,
            reason=_checkpointing_why(training.activation_checkpointing),
        ),
        Choice(key="training.learning_rate", value=training.learning_rate, reason=rate_why),
        Choice(
            key="training.num_train_epochs",
            value=training.num_train_epochs,
            reason=f"{situation.rows:,} rows: {_steps(situation, recipe):,} steps",
        ),
    ]
    if recipe.model.load_in_4bit:
        why = "frozen weights packed: in 16 bits they do not fit"
        found.append(Choice(key="model.load_in_4bit", value=True, reason=why))
    if OPTIMIZER in best.candidate.changes:
        why = "8 bytes a trained parameter for AdamW's moments do not fit; bitsandbytes must be installed"
        if training.optim == "adafactor":
            why = "8 bytes a trained parameter for AdamW's moments do not fit; factored ones do"
        found.append(Choice(key=OPTIMIZER, value=training.optim, reason=why))
    if training.loss_chunk_bytes is not None:
        why = f"all logits at once ({shape.vocab_size:,} words) would take more"
        found.append(Choice(key="training.loss_chunk_bytes", value=training.loss_chunk_bytes, reason=why))
    return tuple(found)


def _backend_why(best: Judged, situation: Situation) -> str:
    if BACKEND in best.candidate.changes:
        held = format_bytes(sum(term.num_bytes for term in host_memory(best.candidate.setting)))
        where = "kept in host memory" if leaves_card(best) else "divided over the cards"
        return f"the fastest that fits: states are {where}; host memory needed: {held}"
    return "one process" if situation.gpus == 1 else "everything fits on each card: only gradients travel"


def _checkpointing_why(is_on: bool) -> str:
    if is_on:
        return "activations are computed again: a quarter to a third slower, far less memory"
    return "activations fit: nothing is computed twice"


def _steps(situation: Situation, recipe: Recipe) -> int:
    per_epoch = -(-situation.rows // recipe.training.global_batch_size)
    return round(per_epoch * recipe.training.num_train_epochs)
