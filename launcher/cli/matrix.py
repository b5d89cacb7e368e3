"""`launcher matrix`: which method runs on which backend in which precision, and how far that is proven."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

SUMMARY = "which method runs on which backend and precision: proven, upstream or refused"
PACKED = "qlora"  # lora over weights of 4 or 8 bits


@dataclass(frozen=True, kw_only=True)
class Row:
    """One cell of the table. `gpu_proof` is the run on cards that showed it; `detail` a test or a reason."""

    method: str
    backend: str
    precision: str
    standing: str
    gpu_proof: str
    detail: str
    alternative: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form of the output can be chosen."""
    parser.add_argument("--json", action="store_true", help="one JSON list on standard output")


def run(args: argparse.Namespace) -> int:
    """Print every method on every backend in every precision."""
    found = [*rows()]
    print(json.dumps([asdict(row) for row in found], indent=2) if args.json else table(found))
    return 0


def rows() -> Iterator[Row]:
    """Every registered method, and lora over packed weights, beside every backend and precision."""
    from launcher.adapters.options import METHODS
    from launcher.backends.options import BACKENDS
    from launcher.backends.support import PRECISIONS

    for method in (*METHODS.names(), PACKED):
        for backend in BACKENDS.names():
            yield from (_row(method, backend, precision) for precision in PRECISIONS)


def _row(name: str, backend: str, precision: str) -> Row:
    from launcher.backends.support import Proven, Refused, Upstream, cell, gpu_proof

    quantised = name == PACKED
    method = "lora" if quantised else name
    found = cell(method, backend, quantised=quantised, precision=precision)
    standing = {Proven: "proven", Upstream: "upstream", Refused: "refused"}[type(found)]
    detail = found.reason if isinstance(found, Refused) else found.test if isinstance(found, Proven) else ""
    return Row(
        method=name,
        backend=backend,
        precision=precision,
        standing=standing,
        gpu_proof=gpu_proof(name, backend),
        detail=detail or (found.warning if isinstance(found, Upstream) else ""),
        alternative=found.alternative if isinstance(found, Refused) else "",
    )


def table(found: list[Row]) -> str:
    """A line for each method and backend: the standing by precision, then what is known of the first one."""
    precisions = [*dict.fromkeys(row.precision for row in found)]
    pairs: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        pairs.setdefault((row.method, row.backend), []).append(row)
    lines = [("method", "backend", *precisions, "on cards", "test, warning or reason")]
    lines += [_line(pair) for pair in pairs.values()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]) - 1)]
    return "\n".join("  ".join([*map(str.ljust, line, widths), line[-1]]) for line in lines)


def _line(pair: list[Row]) -> tuple[str, ...]:
    first = pair[0]
    instead = f"; use {first.alternative}" if first.alternative else ""
    standings = (row.standing for row in pair)
    return (first.method, first.backend, *standings, first.gpu_proof or "-", first.detail + instead)
