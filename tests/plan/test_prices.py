"""Prices come from dated files only."""

from pathlib import Path

import pytest

from launcher.errors import BadValue
from launcher.hardware.catalog import get
from launcher.plan.prices import VARIABLE, price_of


def test_the_catalogue_has_a_price_with_its_source_or_none() -> None:
    found = price_of(get("rtx3090"), environ={})
    assert found is not None
    assert found.low <= found.high and "2026" in found.source and found.currency == "CNY"
    assert price_of(get("rtx3060"), environ={}) is None


def test_a_file_of_ones_own_comes_first(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("gpu,price_per_h,currency,date\nrtx3090,0.22,USD,2026-11-01\n", encoding="utf-8")
    for found in (price_of(get("rtx3090"), file), price_of(get("rtx3090"), environ={VARIABLE: str(file)})):
        assert found is not None
        assert (found.low, found.currency, found.source) == (0.22, "USD", "prices.csv, 2026-11-01")
    other = price_of(get("rtx4090"), file)
    assert other is not None and other.currency == "CNY"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("rtx3090,cheap,USD,2026-11-01", "could not convert"),
        ("rtx3090,0.22,USD,", "lacks date"),
        ("rtx3090,0.22,USD,last week", "line 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text(f"gpu,price_per_h,currency,date\n{line}\n", encoding="utf-8")
    with pytest.raises(BadValue, match=says):
        price_of(get("rtx3090"), file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="cannot be read"):
        price_of(get("rtx3090"), tmp_path / "none.csv")
