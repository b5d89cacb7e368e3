"""The same recipe on one process, DDP and ZeRO-2: real processes, the same numbers.

As started by Accelerate: tests/equivalence. Here the ranks are forks.
"""

from pathlib import Path

import pytest

from launcher.hardware.ports import free_port
from tests.launching import ROOT, RUN, distance, losses, metrics, trained, weights
from tests.train.conftest import WriteRecipe
from tests.warm_runs import trained_forked

BACKENDS = {
    "multi_gpu": "multi_gpu: DistributedDataParallel over 2 ranks",
    "zero2": "zero2: DeepSpeedEngine over 2 ranks",
}


def run(recipe: Path, backend: str, *more: str, processes: int = 2) -> tuple[Path, str]:
    """Train; the run's folder and what it said."""
    words = ["--recipe", str(recipe), "--name", backend, "--new", *more]
    return recipe.parent / "runs" / backend, trained_forked(backend, *words, processes=processes)


@pytest.mark.parametrize("kind", ["classifier", "generator"])
def test_b070_losses_and_weights_are_the_same_on_every_backend(
    kind: str, request: pytest.FixtureRequest
) -> None:
    recipe = request.getfixturevalue(kind)()
    alone, said = run(recipe, "single_gpu")
    assert "single_gpu: one process" in said
    for backend, connected in BACKENDS.items():
        spread, said = run(recipe, backend)
        assert connected in said and "precision fp32: linear layers compute in float32" in said
        assert losses(spread) == pytest.approx(losses(alone), abs=1e-5)
        moved = distance(weights(alone / "final"), weights(spread / "final"))
        length = sum(float((t.double() ** 2).sum()) for t in weights(alone / "final").values()) ** 0.5
        assert moved < 1e-3 * length
        ends = [[line for line in metrics(each) if "eval_loss" in line][-1] for each in (alone, spread)]
        assert ends[0]["eval_loss"] == pytest.approx(ends[1]["eval_loss"], abs=1e-5)


def test_b072_three_ranks_evaluate_every_row_once(classifier: WriteRecipe) -> None:
    recipe = classifier(max_steps=2)
    found = []
    for backend, processes in (("single_gpu", 1), ("multi_gpu", 3)):
        folder, _ = run(recipe, backend, "global_batch_size=12", processes=processes)
        last = metrics(folder)[-1]
        found.append({key: last[key] for key in ("eval_accuracy", "eval_macro_f1", "eval_weighted_f1")})
    assert found[0] == found[1]  # 23 rows over 3 ranks


def test_another_global_batch_is_told_apart(classifier: WriteRecipe) -> None:
    recipe = classifier(max_steps=4)
    found = []
    for name, batch in (("a", 12), ("b", 6)):
        trained_forked("single_gpu", "--recipe", str(recipe), "--name", name, f"global_batch_size={batch}")
        found.append(losses(recipe.parent / "runs" / name))
    assert max(abs(left - right) for left, right in zip(*found, strict=True)) > 1e-3


@pytest.mark.parametrize("backend", ["multi_gpu", "zero2"])
def test_fp16_is_real_on_cpu_ranks(backend: str, classifier: WriteRecipe) -> None:
    folder, said = run(classifier(max_steps=4, precision="fp16"), backend)
    assert "precision fp16: linear layers compute in float16" in said
    assert all(line["loss_scale"] > 1 for line in metrics(folder) if "loss" in line)


def test_the_deepspeed_starter_runs_zero2_as_typed(classifier: WriteRecipe) -> None:
    from tests.launching import BIN

    recipe = classifier(max_steps=2)
    command = [str(BIN / "deepspeed"), "--master_port", str(free_port()), RUN]
    said = trained([*command, "--ds", "ds_configs/zero2.json", "--recipe", str(recipe)]).stderr
    assert "zero2: DeepSpeedEngine over 1 ranks" in said
    assert (recipe.parent / "runs" / "job" / "ds.json").exists()
    assert (ROOT / "ds_configs" / "zero2.json").exists()
