"""`launcher data`: a recipe's data, or a data file alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.cli.main import main
from tests import tiny
from tests.launching import ROOT

SAMPLES = ROOT / "tests" / "data" / "samples"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["data", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_a_file_alone_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, str(SAMPLES / "identity.json"))
    assert code == 0
    for words in (
        "rows      91 to train on",
        "layout    instruction",
        "p50",
        "padding: fixed",
        "choose    max_",
    ):
        assert words in out
    assert "output: ⟦" in out and out.rstrip().endswith("0 problems")
    assert "type --model NAME for tokens" in err


def test_settings_mean_what_they_mean_in_a_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["format=tsv", "layout=regression", "column_names=[id,rating,text]"]
    code, out, _ = told(capsys, str(SAMPLES / "tweets_GroundTruth.txt"), *settings, "--json")
    found = json.loads(out)
    assert code == 0 and found["layout"] == "regression" and found["rows"] == 200
    nested = ["columns.input=instances.0.input", "columns.output=instances.0.output"]
    code, out, _ = told(capsys, str(SAMPLES / "seed_tasks.jsonl"), *nested, "--json")
    assert code == 0 and json.loads(out)["layout"] == "instruction"


def test_problems_are_told_and_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "a,b,c\n" * 25)
    code, out, err = told(capsys, str(path))
    assert code == 1 and out.endswith("21 problems\n")
    assert f"{path}:2  3 fields: a,b,c" in err and "25 problems in all, the first 20 are above" in err


def test_unknown_setting_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, str(SAMPLES / "identity.json"), "layuot=instruction")
    assert code == 2 and "layout" in err


def test_a_models_tokenizer_measures_without_torch(tmp_path: Path) -> None:
    tiny.write_tokenizer(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text('{"model_type": "bert", "max_position_embeddings": 16}')
    tiny.write_csv(tmp_path / "train.csv", 50)
    words = ["data", str(tmp_path / "train.csv"), "--model", str(tmp_path / "model"), "--json"]
    code = (
        "import sys; from launcher.cli.main import main\n"
        f"code = main({words!r})\n"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["lengths"]["unit"] == "tokens" and found["labels"]["names"] == ["negative", "positive"]
    assert found["examples"][0].startswith("[CLS]")


def test_a_recipe_is_measured_by_its_own_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tiny.write_tokenizer(tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text('{"model_type": "bert"}')
    tiny.write_csv(tmp_path / "train.csv", 50)
    recipe = tmp_path / "words.yaml"
    recipe.write_text(
        f"task: classification\nmodel: {{model_name_or_path: {tmp_path / 'model'}}}\n"
        f"data: {{train_file: train.csv, eval_fraction: 0.2, max_length: 12}}\n"
    )
    code, out, err = told(capsys, str(recipe))
    assert code == 0 and "rows      40 to train on, 10 to evaluate on" in out
    assert "lengths   in tokens" in out and "model" in err


def test_unknown_model_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = told(capsys, str(SAMPLES / "identity.json"), "--model", str(tmp_path / "empty"))
    assert code == 2 and "is not a model folder" in err
