"""How long a verb that needs no torch takes, against importing torch alone.

    python benchmarks/startup.py [--pairs 15] [--save]

Each pair is two fresh processes. The aims: at most 0.25 of the import's time, 0.5 for `launcher compile`,
which reads a recipe, resolves a backend and writes the files.
"""

import argparse
import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from paired import Ratio, alternate, ratio, save

LAUNCHER = Path(sys.executable).with_name("launcher")
COMPILE = ("compile", "quickstart", "--backend", "zero2", "--gpus", "2", "--out")
VERBS = {
    "launcher ls": (("ls",), 0.25),
    "launcher check quickstart": (("check", "quickstart"), 0.25),
    "launcher compile quickstart": (COMPILE, 0.5),
}


def seconds(command: Sequence[str]) -> float:
    """Wall seconds of one process; it must end well."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def measure(verb: Sequence[str], num_pairs: int) -> tuple[Ratio, float, float]:
    """The verb's ratio to `import torch`, and the best seconds of both."""
    ours = functools.partial(seconds, [str(LAUNCHER), *verb])
    theirs = functools.partial(seconds, [sys.executable, "-c", "import torch"])
    pairs = alternate(ours, theirs, num_pairs=num_pairs)
    return ratio(pairs), min(first for first, _ in pairs), min(second for _, second in pairs)


def words_of(verb: Sequence[str], folder: str) -> list[str]:
    """The verb's words; one that writes, writes there."""
    return [*verb, folder] if verb[-1] == "--out" else [*verb]


def main() -> int:
    """Print one line a verb; exit code 1 where the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    figures, missed = {}, False
    for name, (verb, aim) in VERBS.items():
        with tempfile.TemporaryDirectory() as folder:
            found, ours_s, torch_s = measure(words_of(verb, folder), arguments.pairs)
        figures[name] = {"ratio": found, "best_s": round(ours_s, 3), "best_import_torch_s": round(torch_s, 3)}
        missed |= found.upper_95 > aim
        word = "missed" if found.upper_95 > aim else "reached"
        print(f"{name:28} {found} of `import torch`; best {ours_s:.3f} s against {torch_s:.3f} s", flush=True)
        print(f"{'':28} aim: upper bound at most {aim}: {word}", flush=True)
    if arguments.save:
        print(f"kept in {save('startup', figures)}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
