"""Packing, token budgets and windows through real runs: the same numbers however the data is cut."""

import shutil
from pathlib import Path

import pytest

from tests.launching import losses, metrics, starter, trained
from tests.train.conftest import WriteRecipe
from tests.train.test_resume import same_run

pytestmark = pytest.mark.slow


def run(backend: str, recipe: Path, name: str, *more: str) -> Path:
    trained([*starter(backend), "--recipe", str(recipe), "--name", name, *more])
    return recipe.parent / "runs" / name


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


def test_a_token_budget_changes_how_a_step_is_cut_and_nothing_else(classifier: WriteRecipe) -> None:
    recipe = classifier(num_train_epochs=1)
    plain = run("single_gpu", recipe, "plain")
    alone = run("single_gpu", recipe, "alone", "data.micro_batch_tokens=90")
    assert losses(alone) == pytest.approx(losses(plain), abs=2e-5)
    for backend in ("multi_gpu", "zero2"):
        ranks = run(backend, recipe, backend, "data.micro_batch_tokens=90")
        assert losses(ranks) == pytest.approx(losses(plain), abs=2e-5)


def test_b072_rows_in_windows_are_each_judged_once_on_any_number_of_ranks(classifier: WriteRecipe) -> None:
    recipe = classifier(num_train_epochs=1)
    ways = ("data.max_length=12", "data.overflow=windows")
    found = []
    for backend in ("single_gpu", "multi_gpu"):
        last = metrics(run(backend, recipe, backend, *ways))[-1]
        found.append(
            {key: value for key, value in last.items() if key.startswith("eval_") and "sec" not in key}
        )
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert found[0]["eval_accuracy"] * 23 == pytest.approx(round(found[0]["eval_accuracy"] * 23))
