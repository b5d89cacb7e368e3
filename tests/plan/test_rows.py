"""Rows counted without the tokenizer: number and about how long."""

import json
from pathlib import Path

import pytest

from launcher.plan.rows import rows_of, tokens


def write(path: Path, rows: list[str]) -> Path:
    kind = path.suffix
    if kind == ".jsonl":
        text = "".join(json.dumps({"text": row}) + "\n" for row in rows)
    elif kind == ".json":
        text = json.dumps([{"text": row} for row in rows])
    elif kind in (".csv", ".tsv"):
        mark = "," if kind == ".csv" else "\t"
        text = f"text{mark}label\n" + "".join(f'"{row}"{mark}1\n' for row in rows)
    else:
        text = "\n".join(rows)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "txt"])
def test_every_kind_of_file_is_counted(kind: str, tmp_path: Path) -> None:
    found = rows_of(write(tmp_path / f"rows.{kind}", ["a b c d" * 20] * 37), max_length=512)
    assert found.num_rows == 37
    assert found.mean_tokens == pytest.approx(37, abs=8)


def test_long_rows_count_as_the_most_that_is_kept(tmp_path: Path) -> None:
    found = rows_of(write(tmp_path / "rows.txt", ["x" * 4000, "x" * 400]), max_length=128)
    assert found.mean_tokens == pytest.approx((128 + 102) / 2, abs=1)


def test_chinese_makes_more_tokens_a_character() -> None:
    assert tokens("微" * 30) > 2 * tokens("a" * 30)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.jsonl", None, "is not here"),
        ("empty.csv", "text,label\n", "has no rows"),
        ("broken.json", "{", "cannot be counted"),
        ("odd.bin", "x", "cannot be counted"),
    ],
)
def test_what_cannot_be_counted_is_unknown_and_says_so(
    name: str, content: str | None, says: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = rows_of(tmp_path / name, max_length=512)
    assert found.num_rows is None
    assert says in found.note and "--rows" in found.note
