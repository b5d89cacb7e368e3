"""Recipes by name from anywhere, and files."""

from pathlib import Path
from typing import Any

import pytest

from launcher.errors import UnknownSetting
from launcher.recipe.library import find, folder, is_shipped, names


def test_shipped_names_resolve_from_anywhere(write: Any) -> None:
    write()
    assert "quickstart" in names()
    for name in names():
        assert find(name) == folder() / f"{name}.yaml"
        assert is_shipped(find(name))
    assert find("quickstart.yaml") == folder() / "quickstart.yaml"


def test_files_are_found_with_and_without_their_ending(write: Any, tmp_path: Path) -> None:
    path = write(name="sub/job.yaml")
    assert find("sub/job.yaml") == path
    assert find(str(path)) == path
    assert find("job", beside=tmp_path / "sub") == path
    write(name="other.yml")
    assert find("other") == tmp_path / "other.yml"


def test_a_shipped_name_wins_over_a_file_and_a_path_over_both(write: Any, tmp_path: Path) -> None:
    write(name="quickstart.yaml")
    assert is_shipped(find("quickstart"))
    assert find("./quickstart.yaml") == tmp_path / "quickstart.yaml"


@pytest.mark.parametrize("name", ["", "quikstart", "no/where.yaml", "x" * 5000, "a\x00b", "../../etc"])
def test_what_is_not_there_is_told_in_three_parts(write: Any, name: str) -> None:
    write()
    with pytest.raises(UnknownSetting) as caught:
        find(name)
    (problem,) = caught.value.problems
    assert problem.what and "quickstart" in problem.right and problem.type


def test_a_missing_name_is_answered_with_a_few_alike_ones_not_with_all(write: Any) -> None:
    write()
    with pytest.raises(UnknownSetting) as caught:
        find("qwen3_8b_lora")
    (problem,) = caught.value.problems
    assert "qwen3_8b_lora_3090" in problem.right and "launcher ls" in problem.right
    assert len(problem.right) < 250
