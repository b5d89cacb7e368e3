"""The shipped sentiment rows: counts, balance, and nothing of the held-out rows in the training rows."""

import csv
import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def script(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_movie_sentiment", root / "scripts/make_movie_sentiment.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shipped(root: Path) -> dict[str, list[dict[str, str]]]:
    folder = root / "recipes/data/movie_sentiment"
    files = {name: (folder / f"{name}.csv").read_text(encoding="utf-8") for name in ("train", "eval")}
    return {name: list(csv.DictReader(text.splitlines())) for name, text in files.items()}


def test_counts_and_balance(shipped: dict[str, list[dict[str, str]]]) -> None:
    assert Counter(row["label"] for row in shipped["train"]) == {"negative": 2000, "positive": 2000}
    assert Counter(row["label"] for row in shipped["eval"]) == {"negative": 1000, "positive": 1000}
    assert all(row["text"].strip() == row["text"] != "" for rows in shipped.values() for row in rows)


def test_labels_are_mixed_all_through(shipped: dict[str, list[dict[str, str]]]) -> None:
    """The source is sorted by label: without the shuffle the first rows would all be of one."""
    for rows in shipped.values():
        for start in range(0, len(rows), 250):
            assert 80 < sum(row["label"] == "positive" for row in rows[start : start + 250]) < 170


def test_no_near_duplicate_stands_across_the_split(
    script: ModuleType, shipped: dict[str, list[dict[str, str]]]
) -> None:
    train, evaluation = ([row["text"] for row in shipped[name]] for name in ("train", "eval"))
    assert script.similarity(evaluation, train).max() <= script.MOST_ALIKE
    assert script.similarity(evaluation[:5], [evaluation[3].upper()])[3, 0] > 0.99


def test_near_duplicates_are_dropped_and_the_first_is_kept(script: ModuleType) -> None:
    rows = [
        ("One of the worst films of 2002.", "n"),
        ("A delight.", "p"),
        ("One of the worst movies of 2002.", "n"),
    ]
    assert script.without_near_duplicates(rows) == rows[:2]


def test_lukewarm_rows_are_left_out(script: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "snippets.txt"
    source.write_bytes(b"1\t1.5\tGood  &amp; fine\r\n2\t-0.9\tMeh\r\n3\t-1.0\tBad")
    assert list(script.read_rows(source)) == [("Good & fine", "positive"), ("Bad", "negative")]


def test_the_script_makes_the_shipped_bytes(
    script: ModuleType, root: Path, shared_data: Path, tmp_path: Path
) -> None:
    script.main([str(shared_data / "vader/movieReviewSnippets_GroundTruth.txt"), str(tmp_path)])
    for name in ("train.csv", "eval.csv"):
        assert (tmp_path / name).read_bytes() == (root / "recipes/data/movie_sentiment" / name).read_bytes()


def test_source_and_licence_stand_beside_the_rows(root: Path) -> None:
    folder = root / "recipes/data/movie_sentiment"
    assert "C.J. Hutto" in (folder / "LICENSE.txt").read_text(encoding="utf-8")
    assert "vaderSentiment 3.3.2" in (folder / "README.md").read_text(encoding="utf-8")
