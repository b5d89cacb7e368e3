"""A trained model is used as it was trained, from its folder alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny
from tests.launching import ROOT, starter, trained


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
    trained([*starter("single_gpu"), "--recipe", str(recipe)])
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
