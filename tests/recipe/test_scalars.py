"""YAML 1.2 scalars, as people write them."""

import math

import pytest
from ruamel.yaml import YAML

from launcher.recipe.scalars import read_scalar

TEXTS = [
    "no",
    "on",
    "yes",
    "off",
    "y",
    "1:30",
    "2026-01-01",
    "1e",
    "e5",
    "0x",
    "1.2.3",
    "-",
    "+",
    ".",
    "a",
    "nan",
]
NUMBERS = {"1e-5": 1e-5, "1E3": 1000.0, ".5": 0.5, "5.": 5.0, "-2.5e+3": -2500.0, "+3": 3, "017": 17}
NUMBERS |= {"0o17": 15, "0x1f": 31, "1_000": 1000, "-7": -7, "-.inf": -math.inf, "1_0.5": 10.5}


@pytest.mark.parametrize("text", TEXTS)
def test_words_stay_text(text: str) -> None:
    assert read_scalar(text) == text


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_numbers_are_numbers(text: str, number: float) -> None:
    assert read_scalar(text) == number
    assert type(read_scalar(text)) is type(number)


@pytest.mark.parametrize("text", [*NUMBERS, "true", "False", "null", "~", "text", "no"])
def test_the_library_reads_the_same(text: str) -> None:
    assert read_scalar(text) == YAML(typ="safe", pure=True).load(text)


def test_null_booleans_and_nan() -> None:
    assert [read_scalar(text) for text in ("", "~", "null")] == [None] * 3
    assert [read_scalar(text) for text in ("true", "FALSE")] == [True, False]
    assert math.isnan(read_scalar(".nan"))


def test_a_number_of_thousands_of_digits_stays_text() -> None:
    assert read_scalar("9" * 5000) == "9" * 5000
