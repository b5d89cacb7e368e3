"""A copied recipe works from its new place."""

from pathlib import Path
from typing import Any

import pytest

from launcher.errors import BadValue
from launcher.recipe.copying import copy_recipe
from launcher.recipe.library import PLANNED, find, folder, names
from launcher.recipe.load import load_recipe


@pytest.mark.parametrize("name", names())
def test_a_shipped_recipe_is_the_same_from_its_new_place(name: str, tmp_path: Path) -> None:
    copy = copy_recipe(name, tmp_path / "mine.yaml")
    first, _, rest = (folder() / f"{name}.yaml").read_text().partition("\n")
    assert first.startswith(PLANNED) and copy.read_text() == rest
    assert load_recipe(str(copy)).recipe == load_recipe(name).recipe


def test_relative_files_and_parents_are_still_found(write: Any, tmp_path: Path) -> None:
    write("training: {seed: 3}\n", name="a/base.yaml")
    for name in ("train.csv", "held.csv"):
        write(name=f"a/{name}", whole="text,label\n")
    text = "# mine\nextends: base.yaml  # the parent\n"
    text += "data:\n  train_file: 'train.csv' # rows\n  eval_file: held.csv\n"
    source = write(name="a/job.yaml", whole=text)
    copy = copy_recipe(str(source), tmp_path / "b.yaml")
    assert load_recipe(str(copy)).recipe == load_recipe(str(source)).recipe
    assert "# the parent" in copy.read_text() and "# rows" in copy.read_text()


def test_a_section_of_one_word_is_mended_too(write: Any, tmp_path: Path) -> None:
    write(name="a/train.csv", whole="text,label\n")
    source = write(name="a/job.yaml", whole="task: classification\nmodel: m\ndata: train.csv\n")
    copy = copy_recipe(str(source), tmp_path / "b.yaml")
    assert load_recipe(str(copy)).recipe.data.train_file == str(tmp_path / "a" / "train.csv")


def test_into_a_folder_the_name_is_kept(write: Any, tmp_path: Path) -> None:
    write()
    assert copy_recipe("quickstart", tmp_path) == tmp_path / "quickstart.yaml"


def test_nothing_is_overwritten(write: Any) -> None:
    path = write()
    before = path.read_text()
    with pytest.raises(BadValue, match="there already") as caught:
        copy_recipe("quickstart", path)
    assert path.read_text() == before
    assert caught.value.problems[0].type == "launcher cp NAME my_job.yaml"


@pytest.mark.parametrize("target", ["mine", "mine.txt", "no/where.yaml"])
def test_a_target_that_cannot_be_is_told(write: Any, target: str) -> None:
    write()
    with pytest.raises(BadValue) as caught:
        copy_recipe("quickstart", Path(target))
    assert caught.value.problems[0].type.startswith("launcher cp NAME ")


def test_a_copy_does_not_promise_what_was_planned_for_the_original(tmp_path: Path) -> None:
    assert find("qwen3_8b_lora_3090").read_text(encoding="utf-8").startswith(PLANNED)
    copy = copy_recipe("qwen3_8b_lora_3090", tmp_path / "mine.yaml")
    assert copy.read_text(encoding="utf-8").startswith("summary: ")
    assert load_recipe(str(copy)).recipe == load_recipe("qwen3_8b_lora_3090").recipe
