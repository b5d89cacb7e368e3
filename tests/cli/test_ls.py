"""`launcher ls`: one line for each shipped recipe."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.recipe import library


def test_every_shipped_recipe_has_a_line(run_verb: Any) -> None:
    code, out, err = run_verb("ls")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == library.names()


def test_for_programs_there_is_json(run_verb: Any) -> None:
    rows = {row["name"]: row for row in json.loads(run_verb("ls", "--json")[1])}
    assert rows["lora_7b_3090"]["method"] == "lora"
    assert rows["lora_7b_3090"]["gpu"] == "rtx3090"
    assert rows["quickstart"]["task"] == "classification"
    assert all(row["summary"] for row in rows.values())


def test_a_broken_recipe_is_listed_as_such(
    run_verb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    monkeypatch.setattr(library, "folder", lambda: tmp_path)
    code, out, _ = run_verb("ls")
    assert code == 0
    assert "launcher check broken" in out
