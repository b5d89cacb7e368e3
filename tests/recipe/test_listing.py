"""The list's lines: the same from the index, from the file and from the recipe itself."""

import json
from pathlib import Path

import pytest

from launcher.recipe import library, listing
from launcher.recipe.load import load_recipe

NAMES = library.names()


def test_the_index_knows_every_recipe_as_its_file_says_it() -> None:
    index = listing.read_index()
    assert sorted(index) == NAMES
    for row in listing.listed():
        read = listing.read_listed(row.name)
        assert {**vars(row), "peak_gib": None} == vars(read)


@pytest.mark.parametrize("name", NAMES)
def test_a_line_says_what_the_recipe_says(name: str) -> None:
    recipe, row = load_recipe(name).recipe, listing.read_listed(name)
    method = "qlora" if recipe.model.load_in_4bit else recipe.adapter.method
    assert (row.task, row.method, row.gpus) == (recipe.task, method, recipe.hardware.gpus)
    assert (row.gpu, row.backend) == (recipe.hardware.gpu or "any", recipe.backend.name)
    assert (row.model, row.summary) == (recipe.model.model_name_or_path, recipe.summary)


@pytest.fixture
def library_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A parent and its child, indexed."""
    monkeypatch.setattr(library, "folder", lambda: tmp_path)
    text = "summary: Parent\ntask: causal_lm\nmodel: {model_name_or_path: a/b}\nadapter: lora\n"
    (tmp_path / "parent.yaml").write_text(text)
    (tmp_path / "child.yaml").write_text(
        "summary: Child\nextends: parent\nhardware: {gpu: rtx3090, gpus: 2}\n"
    )
    index = {name: listing.entry(listing.read_listed(name), 7.5) for name in ("parent", "child")}
    (tmp_path / listing.INDEX).write_text(json.dumps(index))
    return tmp_path


def test_an_indexed_line_is_taken_as_it_is(library_of_two: Path) -> None:
    child, _ = listing.listed()
    assert (child.peak_gib, child.method, child.card, child.backend) == (
        7.5,
        "lora",
        "2x rtx3090",
        "multi_gpu",
    )


def test_a_changed_parent_makes_its_childs_line_new(library_of_two: Path) -> None:
    parent = library_of_two / "parent.yaml"
    parent.write_text(parent.read_text().replace("a/b}", "a/b, load_in_4bit: true}"))
    child, _ = listing.listed()
    assert (child.method, child.peak_gib) == ("qlora", None)


def test_a_recipe_that_nobody_indexed_is_listed(library_of_two: Path) -> None:
    (library_of_two / "fresh.yaml").write_text("summary: Fresh\nextends: child\n")
    assert [row.summary for row in listing.listed()] == ["Child", "Fresh", "Parent"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"child": 3}', '{"child": {"files": {}, "colour": 1}}'])
def test_an_index_that_cannot_be_read_is_no_hindrance(library_of_two: Path, text: str) -> None:
    (library_of_two / listing.INDEX).write_text(text)
    assert [row.summary for row in listing.listed()] == ["Child", "Parent"]


def test_a_sound_index_alone_is_read_without_yaml(
    library_of_two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "read_listed", lambda name: pytest.fail(f"{name} was read"))
    assert len(listing.listed()) == 2
