"""`launcher ls`: one line for each shipped recipe, and fewer where one asks for few."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.recipe import library


def first_words(out: str) -> list[str]:
    return [line.split()[0] for line in out.splitlines()]


def test_every_shipped_recipe_has_a_line(run_verb: Any) -> None:
    code, out, err = run_verb("ls")
    assert (code, err) == (0, "")
    assert sorted(first_words(out)) == library.names()


def test_lines_stand_by_task_and_method(run_verb: Any) -> None:
    rows = {row["name"]: row for row in json.loads(run_verb("ls", "--json")[1])}
    kinds = [(rows[name]["task"], rows[name]["method"]) for name in first_words(run_verb("ls")[1])]
    assert kinds == sorted(kinds, key=kinds.index)  # each kind in one piece
    assert kinds[0] == ("classification", "full")


def test_for_programs_there_is_json(run_verb: Any) -> None:
    rows = {row["name"]: row for row in json.loads(run_verb("ls", "--json")[1])}
    assert rows["lora_7b_3090"]["method"] == "lora"
    assert rows["lora_7b_3090"]["gpu"] == "rtx3090"
    assert 10 < rows["lora_7b_3090"]["peak_gib"] < 23.7
    assert rows["quickstart"]["task"] == "classification"
    assert rows["qlora_7b_3090"]["method"] == "qlora"
    assert all(row["summary"] for row in rows.values())


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["--gpu", "rtx3090"], "gpu", "rtx3090"),
        (["--gpu", "3090"], "gpu", "rtx3090"),
        (["--gpu", "RTX 3090"], "gpu", "rtx3090"),
        (["--method", "qlora"], "method", "qlora"),
        (["--task", "classification"], "task", "classification"),
        (["--backend", "fsdp2"], "backend", "fsdp2"),
        (["--gpus", "8"], "gpus", 8),
    ],
)
def test_options_narrow_the_list(run_verb: Any, words: list[str], key: str, value: object) -> None:
    everything = json.loads(run_verb("ls", "--json")[1])
    rows = json.loads(run_verb("ls", "--json", *words)[1])
    assert 0 < len(rows) < len(everything)
    assert rows == [row for row in everything if row[key] == value]


def test_words_narrow_the_list_together_with_options(run_verb: Any) -> None:
    _, out, _ = run_verb("ls", "qwen3", "--method", "lora", "--gpu", "rtx3090")
    assert "qwen3_8b_lora_3090" in first_words(out)
    assert all(name.startswith("qwen3_") for name in first_words(out))
    assert first_words(run_verb("ls", "dialogue", "ROBERTA", "two")[1]) == ["roberta_large_meld_2x3090"]


def test_nothing_found_says_what_there_is(run_verb: Any) -> None:
    code, out, err = run_verb("ls", "--gpu", "gtx1080")
    assert (code, out) == (1, "")
    assert "rtx3090" in err and "qlora" in err and "launcher advise" in err
    code, out, err = run_verb("ls", "--gpu", "gtx1080", "--json")
    assert (code, json.loads(out)) == (1, [])


def test_a_broken_recipe_is_listed_as_such(
    run_verb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")
    monkeypatch.setattr(library, "folder", lambda: tmp_path)
    code, out, _ = run_verb("ls")
    assert code == 0
    assert "launcher check broken" in out
