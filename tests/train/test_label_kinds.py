"""Sets of classes, numbers and conversations train end to end and are used as they were trained."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from launcher.errors import LauncherError
from launcher.export.predict import Predictor
from launcher.precision_torch import StepPrecision
from launcher.recipe.load import load_recipe
from launcher.step.module import TrainModule
from tests import tiny
from tests.launching import losses, metrics
from tests.warm_runs import trained_forked

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny.write_bert(folder / "bert", initializer_range=0.02)
    tiny.write_llama(folder / "llama")
    return folder


def write_rows(path: Path, kind: str) -> Path:
    draw = random.Random(1)
    rows = []
    for text, label in tiny.sentences(61, 3):
        names = [label, *(["film"] if "film" in text.split() else [])]
        value = 2.0 if label == "positive" else -2.0
        turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "good film"}] * 2
        known = {"set": names, "number": value + draw.gauss(0, 0.1), "class": label}
        rows.append({"messages": turns} if kind == "talk" else {"text": text, "label": known[kind]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def recipe(folder: Path, models: Path, kind: str, data: str, **training: object) -> Path:
    talks = kind == "talk"
    rows = write_rows(folder / "rows.jsonl", kind)
    values = {"global_batch_size": 12, "per_device_train_batch_size": 3, "max_steps": 6, "seed": 7}
    values |= {"learning_rate": 1e-3, "precision": "fp32", "logging_steps": 1, "warmup": 0} | training
    (folder / "job.yaml").write_text(
        f"""task: {"causal_lm" if talks else "classification"}
model: {{model_name_or_path: {models / ("llama" if talks else "bert")}}}
data: {{train_file: {rows}, eval_fraction: 0.2, max_length: 64{data}}}
training: {json.dumps(values)}
hardware: {{device: cpu}}
output_dir: {folder / "runs"}
"""
    )
    return folder / "job.yaml"


KINDS = {
    "set": (", layout: multi_label, class_weights: balanced", {"micro_f1", "macro_f1", "accuracy"}),
    "number": (", layout: regression", {"spearman", "pearson", "mse"}),
    "talk": ("", {"perplexity"}),
}


Run = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def run(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run's folder, by kind and backend; each is trained once."""
    known: dict[tuple[str, str], Path] = {}

    def of(kind: str, backend: str) -> Path:
        if (kind, backend) not in known:
            folder = tmp_path_factory.mktemp(f"{kind}-{backend}")
            file = recipe(folder, models, kind, KINDS[kind][0])
            trained_forked(backend, "--recipe", str(file), timeout_s=600)
            known[kind, backend] = folder / "runs" / "job"
        return known[kind, backend]

    return of


def last_evaluation(folder: Path) -> dict[str, float]:
    return [line for line in metrics(folder) if "eval_loss" in line][-1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_trains_and_is_measured_by_its_own_metrics(kind: str, run: Run) -> None:
    folder = run(kind, "single_gpu")
    found = last_evaluation(folder)
    assert KINDS[kind][1] <= {name.removeprefix("eval_") for name in found}
    assert all(math.isfinite(found[f"eval_{name}"]) for name in KINDS[kind][1])
    assert len(set(losses(folder))) == 6


def test_two_processes_train_sets_with_weights_like_one(run: Run) -> None:
    one, two = run("set", "single_gpu"), run("set", "multi_gpu")
    assert losses(one) == pytest.approx(losses(two), abs=2e-5)
    for name, value in last_evaluation(one).items():
        if name.startswith("eval_") and name != "eval_seconds":
            assert value == pytest.approx(last_evaluation(two)[name], abs=2e-5)


@pytest.mark.parametrize(("kind", "key"), [("set", "labels"), ("number", "value"), ("talk", "answer")])
def test_trained_model_is_used_as_it_was_trained(kind: str, key: str, run: Run) -> None:
    predictor = Predictor(run(kind, "single_gpu"))
    (found,) = predictor.predict(["a superb film"], max_new_tokens=4)
    assert key in found
    problem = {"set": "multi_label_classification", "number": "regression", "talk": None}[kind]
    config = json.loads((predictor.folder / "config.json").read_text(encoding="utf-8"))
    assert config.get("problem_type") == predictor.facts["problem_type"] == problem
    if kind == "talk":
        asked = predictor.tokenizer.apply_chat_template(
            [{"role": "user", "content": "a"}], tokenize=False, add_generation_prompt=True
        )
        assert asked == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
        assert predictor._prompt("a") == predictor.tokenizer(asked, add_special_tokens=False)["input_ids"]


def test_weights_count_in_training_and_not_in_evaluation(models: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(models / "bert")
    precision = StepPrecision(name="fp32", device_type="cpu")
    module = TrainModule(
        model, task="classification", precision=precision, chunk_bytes=None, class_weights=(1.0, 5.0)
    )
    ids = torch.tensor([[2, 7, 3], [2, 8, 3]])
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.tensor([0, 1])}
    weighed, _ = module.train()(**batch)
    plain, logits = module.eval()(**batch)
    each = torch.nn.functional.cross_entropy(logits, batch["labels"], reduction="none")
    assert plain.item() == pytest.approx(each.sum().item(), abs=1e-6)
    assert weighed.item() == pytest.approx((each[0] + 5 * each[1]).item(), abs=1e-5)


def test_metric_of_another_kind_is_refused_with_those_there_are(tmp_path: Path, models: Path) -> None:
    path = recipe(tmp_path, models, "number", KINDS["number"][0], metric_for_best_model="accuracy")
    with pytest.raises(LauncherError, match="'accuracy' is not measured for regression"):
        load_recipe(str(path))
