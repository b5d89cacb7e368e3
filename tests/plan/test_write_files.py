"""A folder of files: written whole, kept where they differ, refused in words."""

from pathlib import Path

import pytest

from launcher.errors import BadValue
from launcher.plan.write_files import write_files


def test_files_that_differ_are_kept_unless_forced(tmp_path: Path) -> None:
    files = {"a.yaml": "one\n", "b.yaml": "two\n"}
    assert {state for _, state in write_files(tmp_path, files, force=False)} == {"written"}
    assert {state for _, state in write_files(tmp_path, files, force=False)} == {"unchanged"}
    (tmp_path / "a.yaml").write_text("mine\n")
    with pytest.raises(BadValue, match="a.yaml there differ"):
        write_files(tmp_path, files | {"c.yaml": "new\n"}, force=False)
    assert not (tmp_path / "c.yaml").exists()
    write_files(tmp_path, files, force=True)
    assert (tmp_path / "a.yaml").read_text() == "one\n"


def test_a_file_in_the_folders_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadValue, match="nothing can be written there"):
        write_files(tmp_path / "taken", {"a.yaml": "one\n"}, force=True)
