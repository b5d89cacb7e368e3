"""A trained model is used as it was trained, from its folder alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.cli.main import main
from tests import tiny
from tests.launching import ROOT
from tests.warm_runs import trained_forked


def predict(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "launcher", "predict", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that has really learnt its words."""
    folder = tmp_path_factory.mktemp("classifier")
    tiny.write_bert(folder / "bert", initializer_range=0.02)
    tiny.write_csv(folder / "train.csv", 400)
    recipe = folder / "words.yaml"
    recipe.write_text(
        f"""task: classification
model: {{model_name_or_path: {folder / "bert"}}}
data: {{train_file: {folder / "train.csv"}, eval_fraction: 0.2, max_length: 40}}
training: {{global_batch_size: 16, learning_rate: 3e-3, num_train_epochs: 12, warmup: 0.1, precision: fp32}}
output_dir: {folder / "runs"}
"""
    )
    trained_forked("single_gpu", "--recipe", str(recipe))
    return folder / "runs" / "words"


def test_a_typed_sentence_gets_its_label(run: Path) -> None:
    for text, label in (("the film is superb", "positive"), ("a dreadful plot", "negative")):
        done = predict(str(run), *text.split(), "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["label"] == label and found["probability"] > 0.9 and found["text"] == text


def test_a_file_gives_a_line_a_text(run: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("a lovely story\n\nan awful actor\n")
    done = predict(str(run), "--file", str(tmp_path / "texts.txt"))
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["positive", "negative"]


def test_the_folder_loads_without_the_launcher(run: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(run / "final")
    tokenizer = AutoTokenizer.from_pretrained(run / "final")
    best = int(model(**tokenizer("a superb scene", return_tensors="pt")).logits.argmax())
    assert model.config.id2label[best] == "positive"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "text"], "no such folder"),
        (["."], "nothing to predict on"),
        ([".", "text"], "no trained model"),
    ],
)
def test_a_wrong_call_says_what_to_type(words: list[str], said: str) -> None:
    done = predict(*words)
    assert done.returncode in (1, 2) and said in done.stderr and "launcher predict" in done.stderr
    assert "Traceback" not in done.stderr


def test_long_texts_are_seen_in_windows_as_in_training(run: Path, tmp_path: Path) -> None:
    """The telling word stands where a cut text would not show it."""
    import shutil

    from launcher.export.predict import Predictor

    again = tmp_path / "windows"
    shutil.copytree(run, again)
    facts = json.loads((again / "final" / "launcher.json").read_text())
    texts = [" ".join(["the"] * 60 + [word]) for word in ("superb", "dreadful")]
    for overflow, seen in (("auto", False), ("windows", True), ("keep_tail", True)):
        facts["data"]["overflow"] = overflow
        (again / "final" / "launcher.json").write_text(json.dumps(facts))
        good, bad = [(each["label"], each["probability"]) for each in Predictor(again).predict(texts)]
        assert (good != bad) is seen, overflow


def test_earlier_turns_stand_in_front_of_an_utterance() -> None:
    from launcher.data.options import DataOptions
    from launcher.export.as_trained import typed_rows

    options = DataOptions.model_validate({"train_file": "x", "context": {"turns": 2}})
    rows = typed_rows(["Ross: hi\tRachel: no\tRoss: why", "alone"], options, "dialogue")
    assert rows.dialogues is not None and rows.utterances is not None
    assert rows.dialogues.texts == ["Ross: hi", "Rachel: no", "Ross: why", "alone"]
    assert rows.dialogues.offsets.tolist() == [0, 3, 4] and rows.utterances.tolist() == [2, 3]


def test_eval_says_what_training_said(run: Path, tmp_path: Path) -> None:
    """The run held out a fifth of its rows: the same rows, measured afterwards."""
    from launcher.data.split import hold_out
    from launcher.export.as_trained import data_options
    from launcher.export.evaluate import _examples, evaluate_file
    from launcher.train.final_model import read_facts
    from tests.launching import metrics

    folder, facts = read_facts(run)
    examples, _ = _examples(data_options(folder, facts), facts)
    _, held_out = hold_out(examples, 0.2, 42)
    names, lines = facts["label_names"], ["text,label"]
    assert held_out.labels is not None
    pairs = zip(held_out.texts["text"], held_out.labels.tolist(), strict=True)
    lines += [f"{words},{names[label]}" for words, label in pairs]
    (tmp_path / "held.csv").write_text("\n".join(lines) + "\n")
    last = [line for line in metrics(run) if "eval_loss" in line][-1]
    found = evaluate_file(run, str(tmp_path / "held.csv"), batch_size=7)
    assert found.rows == len(held_out)
    for name, value in found.metrics.items():
        assert value == pytest.approx(last[f"eval_{name}"], abs=1e-5)


def test_eval_takes_as_many_rows_as_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", str(run), "--file", str(run.parents[1] / "train.csv")]
    assert main([*words, "--max-rows", "9", "--batch-size", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 9
    assert main([*words, "--max-rows", "0"]) == 2
    assert "--max-rows" in capsys.readouterr().err


def test_eval_refuses_labels_that_the_model_does_not_know(run: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("text,label\na film,postive\na plot,negative\n")
    command = [sys.executable, "-m", "launcher", "eval", str(run), "--file", str(tmp_path / "other.csv")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "postive" in done.stderr and "nearest: positive" in done.stderr
    assert not done.stdout and "Traceback" not in done.stderr
