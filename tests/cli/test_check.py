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


def test_b003_a_persons_json_is_checked_by_itself(run_verb: Any, tmp_path: Path) -> None:
    (tmp_path / "zero2.json").write_text('{"zero_optimization": {"stage": 3},\n "overlap_comm": true}')
    code, out, err = run_verb("check", "--ds", "zero2.json")
    assert (code, out) == (2, "zero2.json: 1 problem\n")
    assert "zero2.json:2" in err and "it belongs under zero_optimization" in err
    (tmp_path / "zero2.json").write_text('{"zero_optimization": {"stage": 3}}')
    code, out, err = run_verb("check", "--ds", "zero2.json")
    assert (code, out) == (0, "zero2.json: good\n")
    assert "named for stage 2, but the stage inside is 3" in err


def test_b001_files_are_held_against_the_recipes_that_are_named(run_verb: Any, tmp_path: Path) -> None:
    ds = {"train_batch_size": "64", "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}
    (tmp_path / "mine.json").write_text(json.dumps(ds | {"zero_optimization": {"stage": 2}}))
    words = ("check", "quickstart", "--ds", "mine.json", "--gpus")
    code, out, err = run_verb(*words, "2")
    assert (code, out) == (2, "mine.json: good\nquickstart: 1 problem\n")
    assert "training.global_batch_size | 32     | 64   | -" in err
    assert run_verb(*words, "2", "global_batch_size=64")[0] == 0
    code, _, err = run_verb(*words, "1", "global_batch_size=64")
    assert (code, "train_batch_size 64 != 4 x 8 x 1" in err) == (2, True)


def test_findings_of_a_yaml_come_before_the_recipes(run_verb: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("num_proceses: 2\n")
    code, out, err = run_verb("check", "quickstart", "--config_file", "mine.yaml")
    assert (code, out) == (2, "mine.yaml: 1 problem\nquickstart: good\n")
    assert "did you mean num_processes?" in err
