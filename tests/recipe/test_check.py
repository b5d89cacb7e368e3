"""Everything about a recipe at once: values, rules and files."""

from pathlib import Path
from typing import Any

import pytest

from launcher.recipe.check import check, check_all
from launcher.recipe.library import names


@pytest.mark.parametrize("name", names())
def test_every_shipped_recipe_is_good(name: str) -> None:
    found = check(name)
    assert found.problems == ()
    assert all("yours to bring" in notice for notice in found.notices)


def test_a_missing_file_names_every_place_and_what_to_type(write: Any, tmp_path: Path) -> None:
    found = check(str(write(name="sub/job.yaml")))
    (problem,) = found.problems
    assert found.only_data
    assert problem.where == "sub/job.yaml:3"
    assert "sub/train.csv, train.csv, " in problem.what
    assert problem.type == "data.train_file=FILE"


def test_a_file_that_is_there_is_good(write: Any, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\na,b\n")
    assert check(str(write())).problems == ()


@pytest.mark.parametrize(
    ("name", "words"), [("rows.xlsx", "no known format"), ("folder", "holds no data file")]
)
def test_what_is_no_data_file_is_told(write: Any, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "rows.xlsx").touch()
    (problem,) = check(str(write()), [f"train_file={name}"]).problems
    assert words in problem.what
    assert problem.right and problem.type


def test_data_to_be_brought_is_a_notice_until_somebody_names_a_file() -> None:
    found = check("roberta_large_meld_3090")
    (notice,) = found.notices
    assert "github.com/declare-lab/MELD" in notice
    assert "data.train_file=FILE data.eval_file=FILE" in notice
    named = check("roberta_large_meld_3090", ["train_file=lost.csv", "eval_file=lost.csv"])
    assert len(named.problems) == 2
    assert named.only_data


def test_a_recipe_that_cannot_be_used_is_not_only_data(write: Any) -> None:
    found = check(str(write("training: {seed: x}\n")))
    assert not found.only_data
    assert len(found.problems) == 1


def test_several_at_once_an_unknown_name_among_them() -> None:
    good, unknown = check_all(["quickstart", "quikstart"])
    assert not good.problems
    assert unknown.problems[0].type == "quickstart"


def test_the_real_meld_files_are_taken(shared_data: Path) -> None:
    files = [
        f"train_file={shared_data}/meld/train_sent_emo.csv",
        f"eval_file={shared_data}/meld/dev_sent_emo.csv",
    ]
    found = check("roberta_large_meld_3090", files)
    assert found.problems == found.notices == ()
