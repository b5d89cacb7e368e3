"""The page for one's own rows does what it says: five commands, and its recipe takes its CSV file."""

import csv
from pathlib import Path

import pytest

from launcher.cli.main import main
from tests.docs.manual import ROOT, blocks

PAGE = ROOT / "docs" / "first-recipe.md"
MOST_COMMANDS = 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the page's recipe and a CSV file with the page's columns."""
    (tmp_path / "mine.yaml").write_text(blocks(PAGE, "yaml")[0], encoding="utf-8")
    with (ROOT / "recipes/data/movie_sentiment/train.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:200]
    with (tmp_path / "reviews.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        writer.writerows([row["text"], row["label"]] for row in rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[str]:
    return [line for line in blocks(PAGE, "sh")[0].splitlines() if line.strip()]


def test_it_takes_five_commands_at_most() -> None:
    assert 3 <= len(commands()) <= MOST_COMMANDS
    assert all(line.startswith("launcher ") for line in commands())


def test_its_recipe_is_good_and_its_rows_are_understood(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "mine.yaml"]) == 0
    assert main(["data", "mine.yaml", "--examples", "1"]) == 0
    said = capsys.readouterr()
    assert "text = review, label = sentiment" in said.out
    assert "negative" in said.out


def test_the_benchmark_of_the_newcomer_types_the_same(folder: Path) -> None:
    script = (ROOT / "benchmarks" / "newcomer.py").read_text(encoding="utf-8")
    for line in commands():
        verb, argument = line.split()[1:3]
        assert f'("{verb}", "{argument}"' in script
