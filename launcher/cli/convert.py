"""`launcher convert RUN --to BACKEND --gpus N`: make sure that a run can go on elsewhere, and say how.

Checkpoints have one form that every backend reads on any number of cards, so nothing is rewritten: this
verb looks whether the newest checkpoint is whole, whether the batch divides, and prints the line to type.
"""

import argparse
import shlex
from pathlib import Path

from launcher.errors import Problem, ResumeMismatch
from launcher.recipe.batch import solve
from launcher.recipe.load import LoadedRecipe, load_recipe
from launcher.train.checkpoint_files import newest_whole, read_manifest
from launcher.units import format_bytes

SUMMARY = "see that a run's checkpoint goes on on another backend or number of cards"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and where it is to go."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart")
    parser.add_argument("--to", help="backend to go on with (the run's own)")
    parser.add_argument("--gpus", type=int, help="number of cards, or processes on a CPU (the run's own)")


def run(args: argparse.Namespace) -> int:
    """Print what is there, what changes, and the line that continues; 0 where it can."""
    folder = Path(args.run)
    checkpoint = _newest(folder)
    manifest = read_manifest(checkpoint)
    backend = args.to or str(manifest["backend"])
    num_ranks = args.gpus or int(manifest["num_ranks"])
    loaded = _recipe(folder, backend, num_ranks)
    step = _step(loaded, num_ranks)
    size = sum(written["bytes"] for written in manifest["files"].values())
    print(f"{checkpoint.name}: whole, {len(manifest['files'])} files, {format_bytes(size)}, hashes checked")
    print(
        f"from {manifest['backend']} on {manifest['num_ranks']} rank(s) to {backend} on {num_ranks}: {step}"
    )
    print("carries over: weights, optimizer state, row order and position, schedule, loss scale")
    if (backend, num_ranks) != (manifest["backend"], manifest["num_ranks"]):
        print("does not: dropout masks (they depend on rank and micro batch), and the last bit of sums")
    print(f"memory there: launcher plan {_recipe_file(folder)} --backend {backend} --gpus {num_ranks}")
    print(f"to go on:     {' '.join(_line(folder, backend, num_ranks))}")
    return 0


def _newest(folder: Path) -> Path:
    found, passed = newest_whole(folder)
    if found is None:
        raise ResumeMismatch(
            Problem(
                where=str(folder),
                what="; ".join(passed) or "there is no checkpoint here",
                right="a run folder with a whole checkpoint-N",
                type="launcher run RECIPE save_steps=N, to have some the next time",
            )
        )
    return found


def _recipe_file(folder: Path) -> str:
    return shlex.quote(str(folder / "recipe.yaml"))


def _recipe(folder: Path, backend: str, num_ranks: int) -> LoadedRecipe:
    """The run's own recipe on the other backend: what that one cannot do is refused here."""
    return load_recipe(
        str(folder / "recipe.yaml"), extra={"backend.name": backend, "hardware.gpus": num_ranks}
    )


def _step(loaded: LoadedRecipe, num_ranks: int) -> str:
    options = loaded.recipe.training
    asked = options.per_device_train_batch_size
    cut = solve(options.global_batch_size, None if asked == "auto" else asked, num_ranks)
    return (
        f"global batch {cut.global_batch_size} = {cut.micro_batch_size} rows x "
        f"{cut.accumulation_steps} accumulated x {cut.num_ranks} rank(s)"
    )


def _line(folder: Path, backend: str, num_ranks: int) -> list[str]:
    words = ["launcher", "run", _recipe_file(folder), "--backend", backend, "--gpus", str(num_ranks)]
    where = ["--output_dir", shlex.quote(str(folder.parent)), "--name", shlex.quote(folder.name)]
    return [*words, *where, "--resume"]
