"""Checkpoints of other programs, told apart by their files: what they are, and how to go on from them.

None of them is read: they hold pickles, or lack what an exact continuation needs. No torch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.train.checkpoint_files import MANIFEST, newest_whole, steps_saved

_HUB_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "adapter_model.safetensors",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A layout of files: what it is called, how it is known, and what to do with it."""

    what: str
    matches: Callable[[Path], bool]
    advice: Callable[[Path], str]


def _has(*patterns: str) -> Callable[[Path], bool]:
    return lambda folder: any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def _own_model(folder: Path) -> bool:
    return (folder / "launcher.json").is_file()


def _new_run(folder: Path) -> str:
    """From the weights, where they lie there in a form that a recipe can name."""
    if (folder / "adapter_config.json").is_file():
        return "merge the adapter into its base (peft: merge_and_unload), then model_name_or_path=MERGED"
    if (folder / "config.json").is_file() and any((folder / name).is_file() for name in _HUB_WEIGHTS):
        return f"model_name_or_path={folder}   without --resume: a new run from these weights"
    return "save the model with save_pretrained there, then model_name_or_path=THAT_FOLDER without --resume"


def _consolidate(folder: Path) -> str:
    """DeepSpeed leaves its own script beside the shards."""
    root = folder.parent if folder.name.startswith("global_step") else folder
    script = root / "zero_to_fp32.py"
    if script.is_file():
        return (
            f"python {script} {root} {root}/fp32 (it unpickles: only for files that you trust), copy "
            f"config.json and tokenizer there, then model_name_or_path={root}/fp32 without --resume"
        )
    return "save the model with save_pretrained there, then model_name_or_path=THAT_FOLDER without --resume"


def _unpack(folder: Path) -> str:
    return (
        f"python -m torch.distributed.checkpoint.format_utils dcp_to_torch {folder} state.pt (it unpickles: "
        "only for files that you trust), load state.pt into the model, save_pretrained, then "
        "model_name_or_path=THAT_FOLDER without --resume"
    )


# In this order: a Trainer's checkpoint on DeepSpeed holds both kinds of files.
KINDS = (
    Kind(
        what="a checkpoint of the transformers Trainer",
        matches=_has("trainer_state.json", "training_args.bin"),
        advice=_new_run,
    ),
    Kind(
        what="a folder of accelerate's save_state",
        matches=_has("random_states_*.pkl", "custom_checkpoint_*.pkl"),
        advice=_new_run,
    ),
    Kind(
        what="a DeepSpeed checkpoint",
        matches=_has("*_model_states.pt", "*_optim_states.pt", "global_step*/*_states.pt", "zero_to_fp32.py"),
        advice=_consolidate,
    ),
    Kind(
        what="a checkpoint of torch.distributed.checkpoint",
        matches=_has(".metadata", "*.distcp"),
        advice=_unpack,
    ),
    Kind(
        what="a finished model of this launcher, without optimizer state",
        matches=_own_model,
        advice=_new_run,
    ),
    Kind(
        what="a model folder, without optimizer state",
        matches=_has("config.json", "adapter_config.json"),
        advice=_new_run,
    ),
    Kind(
        what="a training state in PyTorch pickles",
        matches=_has("optimizer.pt", "optimizer.bin", "rng_state*.pth", "*.ckpt", "scheduler.pt"),
        advice=_new_run,
    ),
)


def to_checkpoint(named: Path) -> Path:
    """The checkpoint that was named: the folder itself, or the newest whole one of a run folder.

    Raises BadValue for anything else, saying what it is.
    """
    if (named / MANIFEST).is_file():
        return named
    if steps_saved(named):
        whole, _ = newest_whole(named)
        if whole is not None:
            return whole
    raise not_ours(named)


def not_ours(named: Path) -> BadValue:
    """What a folder is that cannot be resumed from, and how to use it all the same."""
    kind = next((kind for kind in KINDS if named.is_dir() and kind.matches(named)), None)
    if kind is not None:
        what, type_ = f"{named} is {kind.what}", kind.advice(named)
    elif named.is_file():
        what, type_ = f"{named} is a file", "--resume auto"
    else:
        there = f"it has no {MANIFEST}" if named.is_dir() else "there is no such folder"
        what, type_ = f"{named} is no checkpoint: {there}", "--resume auto"
    right = "a checkpoint-N folder of a run of this launcher, or auto for the newest whole one"
    return BadValue(Problem(where="resume_from_checkpoint", what=what, right=right, type=type_))
