"""The best checkpoint is kept and exported, whatever came after it."""

import json
from pathlib import Path

import torch

from tests.launching import metrics, weights
from tests.train.conftest import WriteRecipe
from tests.warm_runs import trained_forked


def test_the_best_evaluation_is_what_is_exported(classifier: WriteRecipe) -> None:
    recipe = classifier(
        eval_steps=2,
        save_steps=2,
        save_total_limit=1,
        load_best_model_at_end="true",
        metric_for_best_model="loss",
        learning_rate=2e-2,
    )
    said = trained_forked("single_gpu", "--recipe", str(recipe))
    run = recipe.parent / "runs" / "job"
    curve = {line["step"]: line["eval_loss"] for line in metrics(run) if "eval_loss" in line}
    best = min(curve, key=lambda step: curve[step])
    assert json.loads((run / "summary.json").read_text())["best"]["step"] == best
    assert best != max(curve), "the last step is the best: the test shows nothing, give it another rate"
    assert f"exporting the best checkpoint, checkpoint-{best}" in said
    exported, kept = weights(run / "final"), weights(run / f"checkpoint-{best}")
    for name, tensor in exported.items():
        assert torch.equal(tensor, kept[f"model.{name}/weight"]), name


def test_intervals_are_steps_rows_or_parts_of_an_epoch(classifier: WriteRecipe) -> None:
    evaluated = []
    for interval in ("2", "24 rows", "0.4 epochs"):
        recipe = classifier(eval_steps=interval, max_steps=6)
        name = interval.replace(" ", "-")
        trained_forked("single_gpu", "--recipe", str(recipe), "--name", name)
        lines = metrics(Path(recipe.parent / "runs" / name))
        evaluated.append([line["step"] for line in lines if "eval_loss" in line])
    assert evaluated == [[2, 4, 6]] * 3
