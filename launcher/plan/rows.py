"""How many rows a training file has and how long they are, read without the tokenizer and without torch.

A plan wants orders of magnitude: lengths are characters over four (words of an alphabet) or over one and
a half (Chinese, Japanese, Korean), cut at `max_length`. Training counts tokens exactly.
"""

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

_MOST_BYTES = 512 * 2**20
_SAMPLE = 2000
_CHARACTERS_A_TOKEN, _WIDE_CHARACTERS_A_TOKEN = 4.0, 1.5
_SPECIAL_TOKENS = 2


@dataclass(frozen=True, kw_only=True)
class Rows:
    """`num_rows` of training, or None with the reason in `note`; `mean_tokens` None where not estimated."""

    num_rows: int | None
    mean_tokens: float | None
    note: str


def rows_of(path: Path, *, max_length: int) -> Rows:
    """Count a csv, tsv, json, jsonl or txt file. Nothing is raised: what cannot be counted is unknown."""
    if not path.is_file():
        return Rows(num_rows=None, mean_tokens=None, note=f"{path.name} is not here: --rows N says how many")
    if path.stat().st_size > _MOST_BYTES:
        return _unknown(path, "is too large to count")
    try:
        return _counted(path, max_length)
    except (OSError, ValueError, csv.Error) as error:
        return _unknown(path, f"cannot be counted ({type(error).__name__})")


def _unknown(path: Path, why: str) -> Rows:
    return Rows(num_rows=None, mean_tokens=None, note=f"{path.name} {why}: --rows N says how many")


def _counted(path: Path, max_length: int) -> Rows:
    texts = _texts(path)
    sample = list(islice(texts, _SAMPLE))
    number = len(sample) + sum(1 for _ in texts)
    if not number:
        return _unknown(path, "has no rows")
    lengths = [min(max_length, tokens(text)) for text in sample]
    mean = sum(lengths) / len(lengths)
    note = f"{number:,} rows in {path.name}, about {mean:.0f} tokens each by their characters"
    return Rows(num_rows=number, mean_tokens=mean, note=note)


def tokens(text: str) -> float:
    """About how many tokens a text makes."""
    plain = sum(map(str.isascii, text))
    return plain / _CHARACTERS_A_TOKEN + (len(text) - plain) / _WIDE_CHARACTERS_A_TOKEN + _SPECIAL_TOKENS


def _texts(path: Path) -> Iterator[str]:
    """One text a row: every value of a record, or the longest column of a table."""
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from _table(path, "\t" if kind == ".tsv" else ",")
    elif kind == ".json":
        found = json.loads(path.read_text(encoding="utf-8-sig"))
        records = found if isinstance(found, list) else next(v for v in found.values() if isinstance(v, list))
        yield from map(_words, records)
    elif kind in (".jsonl", ".txt"):
        with path.open(encoding="utf-8", errors="replace") as file:
            lines = (line for line in file if line.strip())
            yield from (_words(json.loads(line)) for line in lines) if kind == ".jsonl" else lines
    else:
        raise ValueError(f"{kind} is not counted")


def _table(path: Path, delimiter: str) -> Iterator[str]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        next(reader, None)
        yield from (max(row, key=len) for row in reader if row)


def _words(value: Any) -> str:
    """Every text inside a record, joined."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(map(_words, value.values()))
    if isinstance(value, list):
        return " ".join(map(_words, value))
    return ""
