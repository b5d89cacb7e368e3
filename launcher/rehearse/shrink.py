"""From a recipe to the one that is rehearsed: fewer rows and steps, tiny model; everything else as it was."""

from dataclasses import dataclass
from pathlib import Path

from launcher.facts import Machine
from launcher.hardware import catalog
from launcher.optim.schedule import scaled_rate
from launcher.plan.choose import DEFAULT_MICRO_BATCH
from launcher.precision import choose
from launcher.recipe.batch import solve
from launcher.recipe.schema import Recipe
from launcher.recipe.tracking import REMOTE
from launcher.recipe.training import Every, TrainingOptions
from launcher.rehearse.phases import small_freeze
from launcher.rehearse.rows import NUM_EVAL, NUM_TRAIN

NUM_STEPS, SAVE_STEPS, EVAL_STEPS = 12, 2, 4
_ROWS, _ACCUMULATED_ROWS, _MICRO, _MOST_TOKENS, _TOKENS_AT_ONCE = 8, 4, 2, 1024, 48


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the rehearsal's own model and rows lie; `data` is None where the recipe's own files are here."""

    model: Path
    runs: Path
    vocabulary_size: int
    train_file: Path | None = None
    eval_file: Path | None = None


def small_recipe(recipe: Recipe, stage: Stage, num_steps: int = NUM_STEPS) -> Recipe:
    """The recipe to run. Raises HardwareError or BadValue where the real one could not start."""
    model = {"model_name_or_path": str(stage.model), "pip_package": None, "gguf_file": None, "revision": None}
    if recipe.model.attn_implementation == "flash_attention_2":
        model["attn_implementation"] = "auto"
    training = _training(recipe, stage.vocabulary_size, num_steps)
    batch = training.global_batch_size
    return recipe.model_copy(
        update={
            "freeze": small_freeze(recipe.freeze, num_steps=num_steps, global_batch_size=batch),
            "model": recipe.model.model_copy(update=model),
            "data": recipe.data.model_copy(update=_data(recipe, stage)),
            "training": training,
            "backend": _backend(recipe, stage),
            "hardware": recipe.hardware.model_copy(update={"device": "cpu", "gpu": None}),
            "tracking": recipe.tracking.model_copy(update={"report_to": _report_to(recipe)}),
            "output_dir": str(stage.runs),
        }
    )


def _report_to(recipe: Recipe) -> tuple[str, ...]:
    """Nobody outside this machine is told of a rehearsal, and no tracker's package is needed for it."""
    return tuple(name for name in recipe.tracking.report_to if name not in REMOTE) or ("none",)


def precision_of(recipe: Recipe) -> str:
    """What `precision` means on the recipe's own card; as written where no card is named."""
    asked, hardware = recipe.training.precision, recipe.hardware
    if hardware.gpu is None or hardware.device == "cpu":
        return asked
    gpu = catalog.get(hardware.gpu)
    machine = Machine(device="cuda", num_gpus=1, gpu_name=gpu.name, compute_capability=gpu.compute_capability)
    return choose(asked, machine).name


def _training(recipe: Recipe, vocabulary_size: int, num_steps: int) -> TrainingOptions:
    options = recipe.training
    micro, global_batch = _batch(options, recipe.hardware.gpus)
    changes = {
        "global_batch_size": global_batch,
        "per_device_train_batch_size": micro,
        "max_steps": num_steps,
        "learning_rate": _rate(options),
        "lr_scaling": "none",
        "lr_reference_batch_size": None,
        # As many steps as the whole run has would never end here.
        "warmup": options.warmup if options.warmup < 1 else 0.25,
        "precision": precision_of(recipe),
        "logging_steps": 1,
        "memory_probe": options.memory_probe is not False,  # on a card it comes first: seen here too
        "eval_steps": options.eval_steps and Every(amount=EVAL_STEPS, unit="steps"),
        "save_steps": Every(amount=SAVE_STEPS, unit="steps"),
        "save_total_limit": max(2, options.save_total_limit or 2),
        "resume_from_checkpoint": None,
    }
    if options.loss_chunk_bytes is not None:
        changes["loss_chunk_bytes"] = min(options.loss_chunk_bytes, 4 * vocabulary_size * _TOKENS_AT_ONCE)
    return options.model_copy(update=changes)


def _batch(options: TrainingOptions, num_ranks: int) -> tuple[int, int]:
    """(micro, global) batch: some four to eight rows; twice or more where the recipe accumulates.

    Twice shows what more would: every further micro batch only costs time.
    """
    asked = options.per_device_train_batch_size
    real = solve(options.global_batch_size, DEFAULT_MICRO_BATCH if asked == "auto" else asked, num_ranks)
    if real.accumulation_steps == 1:
        micro = min(real.micro_batch_size, max(1, _ROWS // num_ranks))
        return micro, micro * num_ranks
    micro = min(real.micro_batch_size, _MICRO)
    accumulation = max(2, _ACCUMULATED_ROWS // (micro * num_ranks))
    return micro, micro * accumulation * num_ranks


def _rate(options: TrainingOptions) -> float:
    """The real batch's rate: the small batch must not scale it down."""
    return scaled_rate(
        options.learning_rate,
        global_batch=options.global_batch_size,
        reference=options.lr_reference_batch_size,
        scaling=options.lr_scaling,
    )


def _data(recipe: Recipe, stage: Stage) -> dict[str, object]:
    data = recipe.data
    changes: dict[str, object] = {"max_length": min(data.most_tokens, _MOST_TOKENS)}
    if stage.train_file is None:
        return changes | {
            "max_train_rows": min(NUM_TRAIN, data.max_train_rows or NUM_TRAIN),
            "max_eval_rows": min(NUM_EVAL, data.max_eval_rows or NUM_EVAL) if _evaluates(recipe) else None,
        }
    changes |= {"train_file": str(stage.train_file), "max_train_rows": None, "max_eval_rows": None}
    changes |= {"format": "auto", "column_names": None, "encoding": "auto", "eval_split": None}
    changes["eval_file"] = str(stage.eval_file) if stage.eval_file and data.eval_file else None
    if data.eval_fraction is not None:
        changes["eval_fraction"] = max(data.eval_fraction, 0.2)
    return changes


def _evaluates(recipe: Recipe) -> bool:
    return recipe.data.eval_file is not None or recipe.data.eval_fraction is not None


def _backend(recipe: Recipe, stage: Stage) -> object:
    """The recipe's backend; what it puts on a disk goes beside the rehearsal's files."""
    if hasattr(recipe.backend, "nvme_path"):
        return recipe.backend.model_copy(update={"nvme_path": str(stage.runs.parent / "nvme")})
    return recipe.backend
