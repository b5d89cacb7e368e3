"""What a card costs an hour: from a dated file that a person can edit, never from code.

A file of one's own is a CSV with the columns `gpu,price_per_h,currency,date`; without one, the sightings
in `launcher/hardware/gpus.csv` count, each with its source.
"""

import csv
import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.hardware.catalog import Gpu

VARIABLE = "LAUNCHER_PRICES"
COLUMNS = ("gpu", "price_per_h", "currency", "date")


@dataclass(frozen=True, kw_only=True)
class Price:
    """Low and high price of one card's hour, and where and when that was seen."""

    low: float
    high: float
    currency: str
    source: str


def price_of(gpu: Gpu, file: Path | None = None, environ: Mapping[str, str] = os.environ) -> Price | None:
    """The person's own price (`file`, else the variable LAUNCHER_PRICES), else the catalogue's, else None."""
    named = file or (Path(environ[VARIABLE]).expanduser() if environ.get(VARIABLE) else None)
    if named is not None and gpu.name in (own := read_prices(named)):
        return own[gpu.name]
    if gpu.price_cny_per_h is None:
        return None
    low, high = gpu.price_cny_per_h
    return Price(low=low, high=high, currency="CNY", source=f"gpus.csv: {gpu.price_source}")


def read_prices(path: Path) -> dict[str, Price]:
    """Card to price. Raises BadValue for a file, column, number or date that cannot be read."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise _bad(path, f"cannot be read ({error.strerror})") from error
    return {row["gpu"]: _price(path, number, row) for number, row in enumerate(rows, start=2)}


def _price(path: Path, number: int, row: Mapping[str, str | None]) -> Price:
    missing = [column for column in COLUMNS if not row.get(column)]
    if missing:
        raise _bad(path, f"line {number} lacks {', '.join(missing)}")
    try:
        amount, date = float(row["price_per_h"] or ""), datetime.date.fromisoformat(row["date"] or "")
    except ValueError as error:
        raise _bad(path, f"line {number}: {error}") from error
    return Price(low=amount, high=amount, currency=row["currency"] or "", source=f"{path.name}, {date}")


def _bad(path: Path, what: str) -> BadValue:
    return BadValue(
        Problem(
            where=str(path),
            what=f"prices: {what}",
            right=f"a CSV with the columns {', '.join(COLUMNS)}, dates as 2026-11-30",
            type=f"{','.join(COLUMNS)}",
        )
    )
