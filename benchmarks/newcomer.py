"""A newcomer's path, timed: from a fresh clone to a trained model, and to a recipe for one's own CSV file.

    python benchmarks/newcomer.py [--save] [--keep DIR] [--pip-cache]

The clone is made from this repository (committed files alone), its environment by `make quickstart` itself,
without pip's cache unless --pip-cache. The aims: at most 240 s from `git clone` to the trained model, and at
most five commands from a CSV file to a prediction. Needs a package index that answers.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from paired import save

ROOT = Path(__file__).resolve().parents[1]
AIM_S = 240.0
MOST_COMMANDS = 5
NUM_ROWS = 1500
RECIPE = """\
summary: Sentiment of our reviews
extends: quickstart
data:
  train_file: reviews.csv
  columns: {text: review, label: sentiment}
  eval_fraction: 0.1
"""
OWN_ROWS: tuple[tuple[str, ...], ...] = (
    ("check", "mine.yaml"),
    ("data", "mine.yaml"),
    ("plan", "mine.yaml"),
    ("run", "mine.yaml"),
    ("predict", "runs/mine", "It broke after two days."),
)


def timed(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> float:
    """Wall seconds of a command that must end well; what it says passes through."""
    print(f"$ {' '.join(command)}", flush=True)
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=dict(environ), check=True)
    return time.perf_counter() - started


def write_rows(clone: Path, folder: Path) -> None:
    """A CSV file as a person would bring it: other names for its columns, fewer rows."""
    with (clone / "recipes/data/movie_sentiment/train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:NUM_ROWS]
    with (folder / "reviews.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        writer.writerows([row["text"], row["label"]] for row in rows)


def first_model(folder: Path, environ: Mapping[str, str]) -> dict[str, float]:
    """Seconds of `git clone`, of the environment and of the training, as `make quickstart` does both."""
    clone = folder / "finetune-launcher"
    found = {"git clone": timed(["git", "clone", "--quiet", f"file://{ROOT}", str(clone)], folder, environ)}
    found["environment"] = timed(["bash", "scripts/setup.sh", "quickstart"], clone, environ)
    found["make quickstart, environment made"] = timed(["make", "quickstart"], clone, environ)
    return found


def own_rows(folder: Path, environ: Mapping[str, str]) -> dict[str, float]:
    """Seconds of each of the five commands, in a folder with a CSV file and a recipe of six lines."""
    clone, work = folder / "finetune-launcher", folder / "work"
    work.mkdir()
    write_rows(clone, work)
    (work / "mine.yaml").write_text(RECIPE, encoding="utf-8")
    launcher = str(clone / ".venv/bin/launcher")
    return {f"launcher {' '.join(words)}": timed([launcher, *words], work, environ) for words in OWN_ROWS}


def environment(folder: Path, *, pip_cache: bool) -> dict[str, str]:
    """This shell's variables, without an active environment and with caches of their own."""
    left_out = ("VIRTUAL_ENV", "PYTHONPATH", "CONDA_PREFIX")
    here = str(Path(sys.executable).parent)
    path = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != here)
    own = {"PATH": path, "LAUNCHER_CACHE": str(folder / "cache"), "HF_HOME": str(folder / "hub")}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, **own, **({} if pip_cache else {"PIP_NO_CACHE_DIR": "1"})}


def main() -> int:
    """Print the seconds of each step; exit code 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder for clone and runs, kept")
    parser.add_argument("--pip-cache", action="store_true", help="let pip use its cache")
    arguments = parser.parse_args()
    if arguments.keep:
        arguments.keep.mkdir(parents=True)
        return measure(arguments.keep.resolve(), arguments)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), arguments)


def measure(folder: Path, arguments: argparse.Namespace) -> int:
    """Both paths in `folder`."""
    environ = environment(folder, pip_cache=arguments.pip_cache)
    load_before = os.getloadavg()
    first = first_model(folder, environ)
    own = own_rows(folder, environ)
    total = sum(first.values())
    for name, seconds in {**first, **own}.items():
        print(f"{seconds:8.1f} s  {name}")
    reached = total <= AIM_S
    word = "reached" if reached else "missed"
    print(f"{total:8.1f} s  from git clone to a trained model; aim {AIM_S:g} s: {word}")
    all_s = sum(own.values())
    print(f"{len(own):8}    commands from a CSV file to a prediction ({all_s:.1f} s); aim {MOST_COMMANDS}")
    if arguments.save:
        figures = {
            "first_model_s": {**first, "total": total},
            "aim_s": AIM_S,
            "own_csv_s": {**own, "total": sum(own.values())},
            "own_csv_commands": len(own),
            "pip_cache": arguments.pip_cache,
            "load_average_before": load_before,
            "load_average_after": os.getloadavg(),
        }
        print(f"kept in {save('newcomer', figures)}")
    return int(not (reached and len(own) <= MOST_COMMANDS))


if __name__ == "__main__":
    sys.exit(main())
