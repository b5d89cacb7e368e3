"""Thousands of inputs for every door, with the lines of recipe/ and data/ that they reach.

python -m tests.fuzz [--inputs 10000] [--seed 0] [target ...]
"""

import argparse
import sys
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("launcher/recipe", "launcher/data", "launcher/backends")


def main(argv: list[str]) -> int:
    """Print a line a target, every fault once, and the coverage. Returns 1 where a fault was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--inputs", type=int, default=10_000, help="over all targets together, at least")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    watch = coverage.Coverage(data_file=None, include=[f"{ROOT}/{folder}/*" for folder in FOLDERS])
    watch.start()
    try:
        return _run(args.targets, args.inputs, args.seed)
    finally:
        watch.stop()
        _print_coverage(watch)


def _run(names: list[str], inputs: int, number: int) -> int:
    from tests.fuzz.runner import run  # after coverage has begun: what modules do at import counts too
    from tests.fuzz.targets import TARGETS

    chosen = [target for target in TARGETS if not names or target.name in names]
    each = -(-inputs // len(chosen))
    total = mutations = faults = 0
    for target in chosen:
        found = run(target, each, number)
        total, mutations = total + found.inputs, mutations + found.parsing_mutations
        faults += len(found.faults)
        print(
            f"{target.name}: {found.inputs:,} inputs, {found.parsing_mutations:,} mutations that parse; "
            f"{found.passed:,} passed, {found.refused:,} refused, {sum(found.by_place.values()):,} faults",
            flush=True,
        )
        for text in found.faults.values():
            print(f"  {text}", flush=True)
    share = 100 * mutations / max(1, total)
    print(f"together: {total:,} inputs, {share:.0f} % mutations of shipped files that parse, {faults} faults")
    return int(faults > 0)


def _print_coverage(watch: coverage.Coverage) -> None:
    for folder in FOLDERS[:2]:
        lines = missing = 0
        for path in sorted((ROOT / folder).rglob("*.py")):
            _, statements, _, absent, _ = watch.analysis2(str(path))
            lines, missing = lines + len(statements), missing + len(absent)
        print(
            f"{folder}: {lines - missing:,} of {lines:,} lines reached ({100 * (1 - missing / lines):.0f} %)"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
