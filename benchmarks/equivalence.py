"""Losses and weights of every backend beside one process, as a table: how equal "the same numbers" are.

The cells of the equivalence suite (tests/equivalence), by tier: exact (fp32), close (bf16), statistical
(dropout, means over seeds). ZeRO-Infinity has wider models of its own, and runs where it is compiled.

    python benchmarks/equivalence.py [--save] [--backends zero2,fsdp2] [--in FOLDER]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from paired import save  # noqa: E402

from tests.equivalence.cells import CLOSE, EXACT, SEEDS, WIDE  # noqa: E402
from tests.equivalence.measures import apart  # noqa: E402
from tests.equivalence.started import BACKEND_NAMES, SKIPPED, run_cells, write_material  # noqa: E402
from tests.launching import losses  # noqa: E402

DROPOUT = [f"classifier-dropout-{seed}" for seed in SEEDS]
HEADINGS = ("backend", "tier", "task", "method", "max |loss diff|", "max norm diff (rel.)", "displacement")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell beside one process."""

    backend: str
    tier: str
    task: str
    method: str
    loss: float
    norm: float
    displacement: float

    def cells(self) -> tuple[str, ...]:
        """The columns as text."""
        figures = (self.loss, self.norm, self.displacement)
        return (self.backend, self.tier, self.task, self.method, *(f"{figure:.1e}" for figure in figures))


def cells_to_run(backend: str) -> tuple[str, ...]:
    """The cells that the table needs of a backend."""
    if backend == "zero3_nvme":
        return WIDE
    several = (*EXACT, *CLOSE) + (tuple(DROPOUT) if backend in ("single_gpu", "multi_gpu") else ())
    return several + (WIDE if backend == "single_gpu" and "zero3_nvme" not in SKIPPED else ())


def rows(runs: Path, backends: Sequence[str]) -> Iterator[Row]:
    """A row for every cell that ran on a backend of several processes."""
    for backend in backends:
        for cell in cells_to_run(backend):
            if cell in DROPOUT:
                continue
            task, method, *_ = cell.split("-")
            found = apart(runs / f"{backend}-{cell}", runs / f"single_gpu-{cell}")
            tier = "close" if cell in CLOSE else "exact"
            yield Row(backend=backend, tier=tier, task=task, method=method, **asdict(found))


def dropout(runs: Path) -> dict[str, float]:
    """Mean end losses over the seeds on one process and on two, and their difference's standard error."""
    ends = {
        backend: [statistics.mean(losses(runs / f"{backend}-{cell}")[-6:]) for cell in DROPOUT]
        for backend in ("single_gpu", "multi_gpu")
    }
    error = sum(statistics.variance(each) / len(each) for each in ends.values()) ** 0.5
    return {backend: statistics.mean(each) for backend, each in ends.items()} | {"standard_error": error}


def table(found: Sequence[Row]) -> str:
    """The rows in columns."""
    lines = [HEADINGS, *(row.cells() for row in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main() -> int:
    """Run what is not there yet, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default=",".join(name for name in BACKEND_NAMES if name not in SKIPPED))
    parser.add_argument(
        "--in", dest="folder", type=Path, help="a folder to keep; runs in it are not repeated"
    )
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    asked = [name for name in arguments.backends.split(",") if name != "single_gpu"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        if not (folder / "classifier.yaml").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_material(folder)
        for backend in ("single_gpu", *asked):
            left = [
                c
                for c in cells_to_run(backend)
                if not (folder / "runs" / f"{backend}-{c}/summary.json").exists()
            ]
            if left:
                run_cells(folder, backend, left)
        found = [*rows(folder / "runs", asked)]
        print(table(found))
        means = dropout(folder / "runs") if "multi_gpu" in asked else {}
        if means:
            print("dropout, end losses: " + ", ".join(f"{key} {value:.4f}" for key, value in means.items()))
    if arguments.save:
        print(save("equivalence", {"rows": [asdict(row) for row in found], "dropout": means}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
