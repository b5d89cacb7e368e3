"""Which folders of the stack go to a rented machine's data disk, by the variable that moves each.

A variable that a person has set stays theirs, and so does every one that follows from it. A default place
that already lies on the data disk (a linked `~/.cache`) is left alone.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.hardware.platform_facts import Platform, find_platform

OUTPUT_VARIABLE = "LAUNCHER_OUTPUT_DIR"
_PYTHON = f"py{sys.version_info.major}{sys.version_info.minor}"


@dataclass(frozen=True, kw_only=True)
class Moved:
    """One variable: its place below the data disk, the usual one below the home, variables it follows."""

    name: str
    place: str
    usual: str = ""
    follows: tuple[str, ...] = ()


_XDG = ("XDG_CACHE_HOME",)
MOVED = (
    Moved(name="HF_HOME", place="cache/huggingface", usual=".cache/huggingface", follows=_XDG),
    Moved(
        name="HF_DATASETS_CACHE",
        place="cache/huggingface/datasets",
        usual=".cache/huggingface/datasets",
        follows=("HF_HOME", *_XDG),
    ),
    Moved(name="MODELSCOPE_CACHE", place="cache/modelscope", usual=".cache/modelscope"),
    Moved(name="TMPDIR", place="cache/tmp"),
    Moved(name="TORCH_HOME", place="cache/torch", usual=".cache/torch", follows=_XDG),
    Moved(
        # Named by hand, torch makes no folder for each Python any more: operators of two would mix.
        name="TORCH_EXTENSIONS_DIR",
        place=f"cache/torch_extensions/{_PYTHON}",
        usual=".cache/torch_extensions",
        follows=_XDG,
    ),
    Moved(name="TRITON_CACHE_DIR", place="cache/triton", usual=".triton"),
    Moved(name="TORCHINDUCTOR_CACHE_DIR", place="cache/inductor", follows=("TMPDIR",)),
    Moved(name="PIP_CACHE_DIR", place="cache/pip", usual=".cache/pip", follows=_XDG),
    Moved(name="CUDA_CACHE_PATH", place="cache/nv", usual=".nv/ComputeCache"),
    Moved(
        name="LAUNCHER_CACHE",
        place="cache/finetune-launcher",
        usual=".cache/finetune-launcher",
        follows=_XDG,
    ),
    Moved(name="WANDB_DIR", place="cache/wandb"),
    Moved(name="WANDB_CACHE_DIR", place="cache/wandb/cache", usual=".cache/wandb", follows=_XDG),
    Moved(name=OUTPUT_VARIABLE, place="runs"),
)


def placement(platform: Platform, environ: Mapping[str, str], cwd: Path) -> dict[str, str]:
    """Variables to set for this process and its children; empty without a data disk."""
    if platform.data_disk is None:
        return {}
    found = dict(_moved(platform, platform.data_disk, environ, cwd))
    token = platform.home / ".cache/huggingface/token"
    if "HF_HOME" in found and token.is_file() and not environ.get("HF_TOKEN_PATH"):
        found["HF_TOKEN_PATH"] = str(token)  # it lies in HF_HOME otherwise: a login would be forgotten
    return found


def runs_folder(environ: Mapping[str, str], cwd: Path) -> Path:
    """Where the runs of a recipe that names no `output_dir` go: `runs`, or on the data disk."""
    platform = find_platform(environ)
    moved = placement(platform, environ, cwd) if platform else {}
    return Path(environ.get(OUTPUT_VARIABLE) or moved.get(OUTPUT_VARIABLE) or "runs")


def _moved(
    platform: Platform, data_disk: Path, environ: Mapping[str, str], cwd: Path
) -> Iterator[tuple[str, str]]:
    for each in MOVED:
        if any(environ.get(name) for name in (each.name, *each.follows)):
            continue
        usual = cwd if each.name == OUTPUT_VARIABLE else platform.home / each.usual if each.usual else None
        if usual is None or not usual.resolve().is_relative_to(data_disk.resolve()):
            yield each.name, str(data_disk / each.place)


def left_behind(platform: Platform, variables: Mapping[str, str]) -> Path | None:
    """The hub's cache in its usual place, where it holds models that a moved HF_HOME no longer sees."""
    usual = platform.home / ".cache/huggingface/hub"
    moved = variables.get("HF_HOME")
    if moved is None or not any(usual.glob("models--*")):
        return None
    seen = {path.name for path in (Path(moved) / "hub").glob("models--*")}
    return usual if any(path.name not in seen for path in usual.glob("models--*")) else None
