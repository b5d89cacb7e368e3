"""The probe before step 1 does the work of a step and changes nothing; what does not fit is known at once."""

import json
from pathlib import Path

import pytest

from launcher.errors import EXIT_RESUMABLE
from tests.launching import losses
from tests.train.conftest import WriteRecipe
from tests.train.test_out_of_memory import run
from tests.train.test_resume import same_run


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["single_gpu", "zero2", "zero3", "fsdp2"])
def test_a_probed_run_is_the_same_run(backend: str, classifier: WriteRecipe) -> None:
    recipe = classifier(model="bert-dropout", num_train_epochs=1)
    runs = recipe.parent / "runs"
    for name, asked in (("plain", "false"), ("probed", "true")):
        done = run(backend, recipe, name, more=(f"memory_probe={asked}",))
        assert done.succeeded, done.text[-3000:]
        assert ("memory probe: 3 rows" in done.text) == (asked == "true")
    same_run(runs / "plain", runs / "probed")


def test_fp16s_loss_scale_is_as_before(classifier: WriteRecipe) -> None:
    recipe = classifier(precision="fp16", num_train_epochs=1)
    for name, asked in (("plain", "false"), ("probed", "true")):
        done = run("single_gpu", recipe, name, more=(f"memory_probe={asked}",))
        assert done.succeeded, done.text[-3000:]
    runs = recipe.parent / "runs"
    assert losses(runs / "plain") == losses(runs / "probed")
    scales = [_scales(runs / name) for name in ("plain", "probed")]
    assert scales[0] == scales[1] and scales[0]


def test_what_fits_only_in_halves_is_cut_before_the_first_step(classifier: WriteRecipe) -> None:
    recipe = classifier(memory_probe="true", per_device_train_batch_size=6, num_train_epochs=1)
    done = run("single_gpu", recipe, "faulty", {"phase": "backward", "step": 0, "micro": 1})
    assert done.succeeded, done.text[-3000:]
    assert done.text.index("3 rows at once instead of 6") < done.text.index("step 1/")


def test_optimizer_states_without_room_end_the_run_before_the_first_step(classifier: WriteRecipe) -> None:
    recipe = classifier(memory_probe="true")
    done = run("single_gpu", recipe, "faulty", {"phase": "optimizer", "step": 0})
    assert done.codes == [EXIT_RESUMABLE]
    assert "out of memory in the optimizer's step" in done.text and "step 1/" not in done.text


def _scales(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss_scale"] for line in lines if "loss_scale" in line]
