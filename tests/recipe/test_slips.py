"""Slips of hand in a recipe: each is named, with the line to type."""

from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.recipe.document import read_document

SLIPS = {
    "task：classification\n": ("full-width colon", "task: classification"),
    "training:\n  learning_rate：1e-4\n  seed: 1\n": ("full-width colon", "learning_rate: 1e-4"),
    "training:\n\u00a0\u00a0seed: 1\n": ("no-break or full-width", "  seed: 1"),
    "training:\n\u3000seed: 1\n": ("no-break or full-width", "  seed: 1"),
    "summary: what: is this\n": ("second colon", "summary: 'what: is this'"),
    "training:\n  learning_rate: 1e-4\n   seed: 3\n": ("indented deeper than learning_rate", "  seed: 3"),
    'data:\n  train_file: "C:\\Users\\me.csv"\n': ("backslash", "train_file: 'C:\\Users\\me.csv'"),
    "extends quickstart\n": ("no colon", "extends: quickstart"),
    "task=classification\n": ("equals sign", "task: classification"),
    "task: x\n- a\n": ("a list item", "key: [a, b]"),
}


@pytest.mark.parametrize("text", SLIPS, ids=[repr(text)[:24] for text in SLIPS])
def test_a_slip_is_named_with_the_line_to_type(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        read_document(path)
    what, typed = SLIPS[text]
    assert what in str(caught.value)
    assert typed in str(caught.value).partition("type:  ")[2]


@pytest.mark.parametrize("encoding", ["utf-16", "gb18030"])
def test_another_encoding_is_named_with_the_command_that_mends_it(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes("# 学习率\nextends: quickstart\n".encode(encoding))
    with pytest.raises(RecipeError, match=f"iconv -f {encoding.upper()} -t UTF-8"):
        read_document(path)


def test_windows_line_ends_and_a_byte_order_mark_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes("\ufefftask: causal_lm\r\nsummary: a\r\n".encode())
    assert read_document(path).entries["task"].value == "causal_lm"


def test_odd_spaces_inside_a_value_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("summary: a\u3000b\u00a0c\n", encoding="utf-8")
    assert read_document(path).entries["summary"].value == "a\u3000b\u00a0c"
