"""A resolved recipe is a file that loads back to the same recipe."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.recipe.document import compose_value
from launcher.recipe.dump import to_yaml, written
from launcher.recipe.library import names
from launcher.recipe.load import load_recipe


@pytest.mark.parametrize("name", names())
def test_every_shipped_recipe_comes_back(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name).recipe
    path = tmp_path / "resolved.yaml"
    path.write_text(to_yaml(recipe), encoding="utf-8")
    assert load_recipe(str(path)).recipe == recipe


@pytest.mark.parametrize(
    "override",
    [
        "summary=it's: a #summary",
        'summary="a \\"quoted\\" text\\nand more"',
        "summary= 名字 \U0001f600 ",
        "eval_steps=0.333333333333 epochs",
        "learning_rate=1e-300",
        "labels=['1', 'true', 'null', '', 'no', '~']",
        "fill={'1e5': '007', 'a: b': '- c'}",
        "output_dir='true'",
        "revision='1e5'",
    ],
)
def test_awkward_values_come_back(write: Any, tmp_path: Path, override: str) -> None:
    recipe = load_recipe(str(write()), [override]).recipe
    path = tmp_path / "resolved.yaml"
    path.write_text(to_yaml(recipe), encoding="utf-8")
    assert load_recipe(str(path)).recipe == recipe


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=20))
def test_any_text_comes_back(text: str) -> None:
    assert compose_value(written([text]), Path("x"))[0] == [text]


def test_plain_words_stay_bare() -> None:
    assert written("some/model-7b") == "some/model-7b"
    assert written(["a", True, 1e-5, None]) == "[a, true, 1e-05, null]"
