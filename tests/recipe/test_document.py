"""Files that are no recipe are refused with their line, and never hang or crash."""

import os
from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.recipe.document import MAX_FILE_BYTES, compose_value, read_document

BAD = {
    "": "empty",
    "# only a comment\n": "empty",
    "---\n": "empty",
    "- a\n- b\n": "no keys",
    "just words\n": "no keys",
    "a: 1\na: 2\n": "stands twice",
    "s:\n  a: 1\n  a: 2\n": "stands twice",
    "a: !!python/object:os.system x\n": "tag",
    "a: !mine x\n": "tag",
    "a: &x [*x]\n": "leads into itself",
    "a: &x {b: *x}\n": "leads into itself",
    "a: *nowhere\n": "undefined alias",
    "a: [1\n": "not YAML",
    "a:\n\tb: 1\n": "tab",
    "a: 1\n---\nb: 2\n": "second document",
    "? [a, b]\n: 1\n": "list or a mapping",
    "a: \x00\n": "not YAML text",
    "a: " + "[" * 5000 + "\n": "",
    "a: 'open\n": "not YAML",
}


@pytest.mark.parametrize("text", BAD, ids=[repr(text)[:20] for text in BAD])
def test_what_is_no_recipe_is_refused_in_three_parts(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(RecipeError) as caught:
        read_document(path)
    assert BAD[text] in str(caught.value)
    for problem in caught.value.problems:
        assert problem.where.startswith(str(path))
        assert problem.what and problem.right and problem.type


def test_an_alias_bomb_is_stopped(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(RecipeError, match="aliases unfold"):
        read_document(path)


def test_a_plain_alias_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "alias.yaml"
    path.write_text("a: &x 3\nb: *x\n")
    assert read_document(path).entries["b"].value == 3


def test_binary_huge_missing_and_folders(tmp_path: Path) -> None:
    binary, huge = tmp_path / "binary.yaml", tmp_path / "huge.yaml"
    binary.write_bytes(b"a: \xff\xfe\x80")
    huge.write_text("# " + "x" * MAX_FILE_BYTES)
    expected = {
        binary: "not UTF-8",
        huge: "too many",
        tmp_path: "no regular file",
        tmp_path / "no.yaml": "no such",
    }
    for path, words in expected.items():
        with pytest.raises(RecipeError, match=words):
            read_document(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(RecipeError, match="no regular file"):
        read_document(pipe)


def test_lines_are_those_of_the_keys_and_windows_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes("\ufeffa: 1\r\nb:\r\n  c: no\r\n".encode())
    entries = read_document(path).entries
    assert (entries["a"].value, entries["a"].line) == (1, 1)
    assert (entries["b"].value["c"].value, entries["b"].value["c"].line) == ("no", 3)


def test_all_problems_of_form_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text("a: 1\na: 2\nb: !x 1\n")
    with pytest.raises(RecipeError) as caught:
        read_document(path)
    assert [problem.where.rpartition(":")[2] for problem in caught.value.problems] == ["2", "3"]


def test_a_value_that_stands_alone() -> None:
    assert compose_value("[a, 1e-5, {b: no}]", Path("x")) == (
        ["a", 1e-5, {"b": "no"}],
        ["a", "1e-5", {"b": "no"}],
    )
