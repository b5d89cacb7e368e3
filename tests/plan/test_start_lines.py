"""The lines that start compiled files: paths from the clone's root, modules where it is installed."""

from pathlib import Path
from typing import Any

import pytest

from launcher.plan.start_lines import Compilation, lines_text, root, start_lines, typed_path


def lines(**changes: Any) -> tuple[str, ...]:
    """The lines for four ranks in /made."""
    values: dict[str, Any] = {"out": Path("/made"), "name": "job", "num_ranks": 4, "has_json": True}
    return start_lines(Compilation(**(values | {"keeps_trainer": False, "variables": {}} | changes)))


def test_paths_inside_the_clone_are_typed_from_its_root() -> None:
    assert typed_path(root() / "compiled" / "ds.json") == "compiled/ds.json"
    assert typed_path(Path("/elsewhere/ds.json")) == "/elsewhere/ds.json"


def test_both_starters_get_the_files() -> None:
    recipe = "--recipe /made/recipe.yaml --name job"
    assert lines() == (
        f"accelerate launch --config_file /made/accelerate.yaml launcher/run.py {recipe}",
        f"deepspeed --num_gpus 4 launcher/run.py --ds /made/ds.json {recipe}",
    )
    assert len(lines(has_json=False)) == 1


def test_an_installed_package_is_started_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.plan.start_lines.is_clone", lambda: False)
    accelerate, deepspeed = lines()
    assert " -m launcher.run --recipe " in accelerate
    assert " --module launcher.run --ds " in deepspeed
    assert "from any folder" in lines_text([accelerate])


def test_a_folder_with_blanks_is_quoted_and_variables_stand_in_front() -> None:
    line = lines(out=Path("/my runs"), variables={"A": "1"})[0]
    assert line.startswith("A=1 accelerate launch --config_file '/my runs/accelerate.yaml' ")


def test_the_file_says_where_to_type() -> None:
    assert lines_text(["one", "two"]) == f"# one of these, from {root()}\none\ntwo\n"
