"""`key=value`: short keys where unique, values as in a recipe."""

from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.recipe.load import load_recipe
from launcher.recipe.overrides import choose, read_extra, read_override, read_overrides


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("learning_rate=1e-5", "training.learning_rate", 1e-5),
        ("--learning_rate=1e-5", "training.learning_rate", 1e-5),
        ("training.learning_rate=1", "training.learning_rate", 1),
        ("lora_r=4", "adapter.lora_r", 4),
        ("name=zero2", "backend.name", "zero2"),
        ("output_dir=no", "output_dir", "no"),
        ("train_file=a #1: b.csv", "data.train_file", "a #1: b.csv"),
        ("train_file=", "data.train_file", None),
        ("labels=[a, b]", "data.labels", ["a", "b"]),
        ("fill.name=the launcher's: team", "data.fill.name", "the launcher's: team"),
        ("fill.author='quoted'", "data.fill.author", "quoted"),
        ("train_file='tis.csv", "data.train_file", "'tis.csv"),
        ("columns.text=Utterance", "data.columns.text", "Utterance"),
        ("summary=a=b", "summary", "a=b"),
    ],
)
def test_one_setting(argument: str, key: str, value: object) -> None:
    (leaf,) = read_override(argument)
    assert (leaf.key, leaf.value) == (key, value)
    assert leaf.origin.kind == "command line"


def test_a_mapping_falls_into_its_names() -> None:
    keys = {leaf.key: leaf.value for leaf in read_override("columns={text: A, label: B}")}
    assert keys == {"data.columns.text": "A", "data.columns.label": "B"}
    keys = {leaf.key: leaf.value for leaf in read_override("adapter={method: lora, lora_r: 4}")}
    assert keys == {"adapter.method": "lora", "adapter.lora_r": 4}


@pytest.mark.parametrize(
    "argument", ["learning_rate", "=3", "", "labels=[a", "columns={a", "extends=quickstart"]
)
def test_what_is_no_setting_is_told_in_three_parts(argument: str) -> None:
    _, problems = read_overrides([argument])
    assert len(problems) == 1
    assert problems[0].where == "command line"
    assert problems[0].what and problems[0].right and problems[0].type


def test_an_ambiguous_key_names_its_meanings() -> None:
    with pytest.raises(RecipeError, match=r"a\.name or b\.name"):
        choose("name", [("a", "name"), ("b", "name")])
    assert choose("name", []) is None


def test_what_the_starter_decided() -> None:
    (leaf,) = read_extra({"hardware.gpus": 4})
    assert (leaf.path, leaf.value, leaf.origin.place()) == (("hardware", "gpus"), 4, "starter")


def test_a_key_of_no_section_stays_as_typed(tmp_path: Path) -> None:
    (leaf,) = read_override("nothing.like.this=1")
    assert leaf.path == ("nothing", "like", "this")


def test_a_number_of_cards_as_text_chooses_a_backend_for_them() -> None:
    """What follows `--gpus` comes as text from some verbs: it is a number all the same."""
    loaded = load_recipe("quickstart", extra={"hardware.gpus": "2"})
    assert loaded.recipe.hardware.gpus == 2
    assert loaded.recipe.backend.name == "multi_gpu"
