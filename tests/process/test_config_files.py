"""A configuration file is found beside the person, in the clone, or in an installed package."""

from pathlib import Path

import pytest

from launcher.process import config_files
from launcher.process.config_files import find_config


def test_the_clone_is_searched_from_anywhere(tmp_path: Path, root: Path) -> None:
    assert find_config("ds_configs/zero2.json", tmp_path) == root / "ds_configs/zero2.json"


def test_a_wheel_carries_the_same_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "launcher"
    (package / "_ds_configs").mkdir(parents=True)
    (package / "_ds_configs" / "zero2.json").touch()
    monkeypatch.setattr(config_files, "PACKAGE", package)
    assert find_config("ds_configs/zero2.json", tmp_path) == package / "_ds_configs" / "zero2.json"


def test_a_file_that_is_nowhere_is_named_as_seen_from_here(tmp_path: Path) -> None:
    assert find_config("no/such.json", tmp_path) == tmp_path / "no/such.json"


def test_an_absolute_path_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.touch()
    assert find_config(str(path)) == path
