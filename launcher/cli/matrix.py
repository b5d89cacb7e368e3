"""`launcher matrix`: which method runs on which backend, and how far that is proven."""

import argparse
import json
from dataclasses import asdict, dataclass

SUMMARY = "which method runs on which backend: proven, upstream or refused"
HEADINGS = ("method", "backend", "standing", "on cards", "test, warning or reason")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell of the table, for people and programs."""

    method: str
    backend: str
    standing: str
    gpu_proof: str
    detail: str
    alternative: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form of the output can be chosen."""
    parser.add_argument("--json", action="store_true", help="one JSON list on standard output")


def run(args: argparse.Namespace) -> int:
    """Print every method on every backend."""
    found = rows()
    print(json.dumps([asdict(row) for row in found], indent=2) if args.json else table(found))
    return 0


def rows() -> list[Row]:
    """Every registered method beside every registered backend."""
    from launcher.adapters.options import METHODS
    from launcher.backends.options import BACKENDS

    return [_row(method, backend) for method in METHODS.names() for backend in BACKENDS.names()]


def _row(method: str, backend: str) -> Row:
    from launcher.backends.support import Proven, Upstream, cell, gpu_proof

    found, proof = cell(method, backend), gpu_proof(method, backend)
    if isinstance(found, Proven):
        return Row(method=method, backend=backend, standing="proven", gpu_proof=proof, detail=found.test)
    if isinstance(found, Upstream):
        return Row(method=method, backend=backend, standing="upstream", gpu_proof=proof, detail=found.warning)
    return Row(
        method=method,
        backend=backend,
        standing="refused",
        gpu_proof=proof,
        detail=found.reason,
        alternative=found.alternative,
    )


def table(found: list[Row]) -> str:
    """The rows in columns; `-` where a column is empty."""
    lines = [HEADINGS, *(_cells(row) for row in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS) - 1)]
    return "\n".join("  ".join([*map(str.ljust, line, widths), line[-1]]) for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    instead = f"; use {row.alternative}" if row.alternative else ""
    return (row.method, row.backend, row.standing, row.gpu_proof or "-", row.detail + instead)
