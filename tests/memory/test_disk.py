"""Disk of a run: checkpoints in a form of no backend, the final model, offloading to a disk."""

from launcher.memory.disk import disk
from launcher.recipe.training import TrainingOptions
from tests.memory.shapes import full, mistral, sharded, with_lora

SAVING = TrainingOptions.model_validate({"save_steps": "100 steps", "save_total_limit": 2})


def test_one_checkpoint_more_than_is_kept() -> None:
    found = {each.name: each.num_bytes for each in disk(full(mistral()), SAVING)}
    assert found["checkpoints"] == 3 * 12 * mistral().num_params
    assert found["final model"] == 4 * mistral().num_params


def test_b047_checkpoints_do_not_depend_on_ranks_or_backend() -> None:
    settings = [full(mistral()), sharded(full(mistral()), num_ranks=2), sharded(full(mistral()), "zero3", 4)]
    assert len({disk(setting, SAVING) for setting in settings}) == 1


def test_only_what_trains_is_saved() -> None:
    nothing_saved = TrainingOptions.model_validate({})
    [final] = disk(with_lora(mistral()), nothing_saved)
    assert final.num_bytes == 4 * 13_631_488


def test_offloading_to_a_disk_is_counted() -> None:
    setting = sharded(full(mistral()), "zero3", backend="zero3_nvme")
    assert any(each.name == "offloaded to disk" for each in disk(setting, SAVING))
