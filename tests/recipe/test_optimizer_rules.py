"""Optimizers are refused where they would compute something else."""

from typing import Any

import pytest

from launcher.backends.options import BACKENDS
from launcher.optim.table import works_on
from launcher.recipe.load import load_recipe


@pytest.mark.parametrize("name", ["sgd", "adafactor", "adamw_8bit", "paged_adamw_8bit"])
def test_a_backend_that_would_change_the_numbers_is_refused(name: str, write: Any, refuse: Any) -> None:
    for backend in BACKENDS.names():
        overrides = [f"optim={name}", f"backend={backend}"]
        if works_on(name, backend):
            assert load_recipe(str(write()), overrides).recipe.training.optim == name
            continue
        problems = refuse(write(), *overrides).problems
        found = [problem for problem in problems if problem.what.startswith("training.optim:")]
        assert len(found) == 1 and backend in found[0].what and "single_gpu" in found[0].right


def test_adams_settings_have_no_effect_elsewhere(write: Any) -> None:
    notices = load_recipe(str(write()), ["optim=adafactor", "adam_beta1=0.8"]).notices
    assert any("adam_beta1: has no effect" in notice for notice in notices)
