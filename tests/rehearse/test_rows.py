"""Made-up rows are what the real reader takes for the recipe's own."""

from pathlib import Path

import pytest

from launcher.data.split import read_splits
from launcher.recipe.load import load_recipe
from launcher.recipe.schema import Recipe
from launcher.rehearse.rows import layout_of, write_rows


def _recipe(*overrides: str, task: str = "classification") -> Recipe:
    base = "quickstart" if task == "classification" else "lora_7b_3090"
    return load_recipe(base, overrides).recipe


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl"])
def test_labelled_rows_have_the_recipes_columns_and_every_label(tmp_path: Path, suffix: str) -> None:
    overrides = ("data.columns={text: Utterance, label: Emotion}", "data.labels=[a, b, c]")
    recipe = _recipe(*overrides, "data.eval_file=null")
    path = write_rows(recipe, tmp_path / f"train{suffix}", 37, seed=1)
    splits = read_splits(recipe.data, path, None, recipe.task, 0)
    assert len(splits.train) == 37
    assert splits.label_names == ("a", "b", "c")
    assert splits.train.labels is not None and set(splits.train.labels) == {0, 1, 2}


@pytest.mark.parametrize(
    ("overrides", "suffix", "layout"),
    [
        ((), ".jsonl", "instruction"),
        (("data.layout=plain_text",), ".jsonl", "plain_text"),
        (("data.columns={text: body}",), ".csv", "plain_text"),
        (("data.train_file=mine.txt",), ".txt", "plain_text"),
    ],
)
def test_layout_follows_recipe_columns_and_file(
    tmp_path: Path, overrides: tuple[str, ...], suffix: str, layout: str
) -> None:
    recipe = _recipe(*overrides, task="causal_lm")
    assert layout_of(recipe) == layout
    path = write_rows(recipe, tmp_path / f"train{suffix}", 37, seed=1)
    splits = read_splits(recipe.data, path, None, recipe.task, 0)
    assert splits.layout == layout
    assert len(splits.train) + len(splits.evaluation or ()) == 37


def test_rows_follow_the_seed(tmp_path: Path) -> None:
    recipe = _recipe()
    texts = [
        write_rows(recipe, tmp_path / f"{n}.csv", 9, seed=seed).read_text()
        for n, seed in enumerate((1, 1, 2))
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("task", "layout"),
    [
        *(("classification", name) for name in ("text_pair", "regression", "multi_label", "dialogue")),
        *(("causal_lm", name) for name in ("messages", "sharegpt", "prompt_completion")),
    ],
)
def test_every_layout_can_be_made_up(tmp_path: Path, task: str, layout: str) -> None:
    overrides = [f"data.layout={layout}", "data.eval_file=null", "data.eval_fraction=0.2"]
    overrides += ["training.metric_for_best_model=loss"] if task == "classification" else []
    recipe = _recipe(*overrides, task=task)
    path = write_rows(recipe, tmp_path / "train.jsonl", 37, seed=1)
    splits = read_splits(recipe.data, path, None, recipe.task, 0)
    assert splits.layout == layout and splits.evaluation is not None
    assert len(splits.train) + len(splits.evaluation) == 37
