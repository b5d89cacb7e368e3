"""`launcher check`: verdicts on standard output, findings on standard error, exit codes by kind."""

import json
from pathlib import Path
from typing import Any

from launcher.recipe.library import names

BAD = "task: classification\nmodel: m\ndata: {train_file: lost.csv}\ntraining: {sed: 1}\n"


def test_without_a_name_all_shipped_recipes_are_good(run_verb: Any) -> None:
    code, out, _ = run_verb("check")
    assert code == 0
    assert out.splitlines() == [f"{name}: good" for name in names()]


def test_a_bad_recipe_is_2_with_file_line_and_key(run_verb: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    code, out, err = run_verb("check", "quickstart", "bad.yaml")
    assert code == 2
    assert out == "quickstart: good\nbad.yaml: 1 problem\n"
    assert err.startswith("bad.yaml:4  training.sed: unknown key 'sed'\n  right: ")
    assert "\n  type:  " in err


def test_only_data_missing_is_1(run_verb: Any, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(BAD.replace("sed", "seed"))
    code, out, _ = run_verb("check", "job.yaml")
    assert (code, out) == (1, "job.yaml: 1 problem\n")


def test_settings_are_laid_over_every_recipe(run_verb: Any) -> None:
    code, out, err = run_verb("check", "quickstart", "gpus=3")
    assert code == 2
    assert "the nearest: 30 and 33" in err


def test_for_programs_there_is_json(run_verb: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    code, out, err = run_verb("check", "quickstart", "bad.yaml", "nowhere", "--json")
    good, bad, nowhere = json.loads(out)
    assert (code, err) == (2, "")
    assert good["ok"] and not bad["ok"] and not nowhere["ok"]
    assert bad["problems"][0]["where"] == "bad.yaml:4"
    assert set(bad["problems"][0]) == {"where", "what", "right", "type"}
