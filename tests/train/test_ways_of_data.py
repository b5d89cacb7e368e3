"""Packing, token budgets and windows through real runs: the same numbers however the data is cut."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from launcher.facts import Starter
from launcher.process.arguments import parse
from launcher.train.rank import run_rank
from tests.launching import losses, metrics
from tests.train.conftest import WriteRecipe
from tests.train.test_resume import same_run
from tests.warm_runs import trained_forked

WINDOWS = ("data.max_length=12", "data.overflow=windows")
BUDGET = "data.micro_batch_tokens=90"


def run(backend: str, recipe: Path, name: str, *more: str) -> Path:
    trained_forked(backend, "--recipe", str(recipe), "--name", name, *more)
    return recipe.parent / "runs" / name


def run_here(recipe: Path, name: str, *more: str) -> Path:
    """In this process: seconds less."""
    run_rank(
        parse(["--recipe", str(recipe), "--name", name, *more]), Starter(name="python", backend="single_gpu")
    )
    return recipe.parent / "runs" / name


def quality(run: Path) -> dict[str, Any]:
    last = metrics(run)[-1]
    return {key: value for key, value in last.items() if key.startswith("eval_") and "seconds" not in key}


def test_a_token_budget_changes_how_a_step_is_cut_and_nothing_else(classifier: WriteRecipe) -> None:
    recipe = classifier(num_train_epochs=1)
    plain, cut = run_here(recipe, "plain"), run_here(recipe, "cut", BUDGET)
    assert losses(cut) == pytest.approx(losses(plain), abs=2e-5)
    assert quality(cut) == pytest.approx(quality(plain), abs=2e-5)


def test_rows_in_windows_are_each_judged_once(classifier: WriteRecipe) -> None:
    """23 rows to evaluate on: accuracy is a number of them, not of windows."""
    found = quality(run_here(classifier(max_steps=2), "windows", *WINDOWS))
    assert found["eval_accuracy"] * 23 == pytest.approx(round(found["eval_accuracy"] * 23))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["multi_gpu", "zero2"])
def test_b072_windows_and_a_token_budget_on_two_ranks_give_the_numbers_of_one(
    backend: str, classifier: WriteRecipe
) -> None:
    recipe = classifier(max_steps=4)
    alone = run_here(recipe, "alone", *WINDOWS)
    ranks = run(backend, recipe, "ranks", *WINDOWS, BUDGET)
    assert losses(ranks) == pytest.approx(losses(alone), abs=2e-5)
    assert quality(ranks) == pytest.approx(quality(alone), abs=2e-5)


@pytest.mark.slow
def test_b045_a_packed_run_cut_by_tokens_resumes_bit_for_bit(generator: WriteRecipe) -> None:
    recipe = generator(
        save_steps=2, save_total_limit=9, global_batch_size=4, per_device_train_batch_size=2, max_steps=9
    )
    ways = ("data.packing=true", "data.max_length=64", "data.micro_batch_tokens=150")
    whole = run("single_gpu", recipe, "whole", *ways)
    cut = whole.with_name("cut")
    shutil.copytree(whole, cut)
    for name in ("final", "checkpoint-8"):
        shutil.rmtree(cut / name)
    run("single_gpu", recipe, "cut", "--resume", *ways)
    same_run(whole, cut)
