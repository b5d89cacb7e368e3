"""`launcher rehearse RECIPE`: the whole run on CPU processes with a tiny model, before a GPU is rented."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from launcher.cli._recipe_words import recipe_named, recipe_settings
from launcher.errors import EXIT_FAILED, Conflict, LauncherError, Problem
from launcher.process.arguments import Grammar, Reader
from launcher.recipe.load import load_recipe

SUMMARY = "prove a whole run on CPU processes with a tiny model"
USAGE = """usage: launcher rehearse RECIPE [--backend NAME] [--gpus N] [--keep DIR] [--json] [key=value ...]

Runs the recipe for real with a tiny model of its architecture: steps, evaluation, checkpoints, a kill
between two saves, resume, export, and a reload in a new process. Needs no GPU, no network, no weights.

--gpus N    CPU processes that stand for so many cards (the recipe's hardware.gpus)
--keep DIR  keep model, rows, logs and run folder in DIR, which must be empty or new
--json      the verdict as JSON on standard output"""
GRAMMAR = Grammar(
    with_value=("recipe", "backend", "gpus", "keep"), flags=("json",), names_recipe=True, usage=USAGE
)


def run(reader: Reader) -> int:
    """Print the verdict; 0 where every stage was passed, else 1."""
    name, settings = recipe_named(reader, example="launcher rehearse quickstart"), recipe_settings(reader)
    try:
        loaded = load_recipe(name, reader.overrides, extra=settings)
    except LauncherError as error:
        print(f"{error}\nFAILED at stage 'recipe'", file=sys.stderr)
        return EXIT_FAILED
    from launcher.rehearse.rehearsal import Rehearsal

    with _ended_by_sigterm(), _folder(reader.options.get("keep")) as folder, _settled(folder):
        verdict = Rehearsal(loaded=loaded, folder=folder, say=_say).run()
        verdict.folder = str(folder) if "keep" in reader.options else None
    print(verdict.to_json() if "json" in reader.flags else verdict.text())
    return 0 if verdict.passed else EXIT_FAILED


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _folder(kept: str | None) -> Iterator[Path]:
    """A folder that is gone afterwards, or the one to keep."""
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="launcher-rehearse-") as name:
            yield Path(name).resolve()
        return
    folder = Path(kept).expanduser().resolve()
    if folder.exists() and any(folder.iterdir()):
        raise Conflict(
            Problem(
                where="--keep",
                what=f"{folder} is not empty",
                right="a new folder, or an empty one",
                type=f"--keep {kept}-2",
            )
        )
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


@contextmanager
def _settled(folder: Path) -> Iterator[None]:
    """Local files and the CPU alone, for this process too; set before the hub's client is imported."""
    settings = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DS_ACCELERATOR": "cpu"}
    settings["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "tmp")  # torch makes that folder when it is imported
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM unwinds, so that no process and no folder stays."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
