"""The freeze section: read as people write it, resolved into steps, refused where it cannot be."""

from typing import Any

import pytest

from launcher.errors import BadValue
from launcher.recipe.freezing import FreezeOptions, opening_steps, openings
from launcher.recipe.load import load_recipe

NAMES = [
    "bert.embeddings.word_embeddings.weight",
    *(f"bert.encoder.layer.{index}.output.dense.weight" for index in range(4)),
    "bert.pooler.dense.weight",
    "classifier.weight",
]


def at(**options: Any) -> dict[str, float]:
    found = openings(FreezeOptions.model_validate(options), NAMES).at_epoch
    return {name.rpartition(".")[0].removeprefix("bert."): epoch for name, epoch in found.items()}


def test_phases_only_add() -> None:
    schedule = {"0": ["classifier", "pooler"], "2": "top 2 blocks", "4": "top 4 blocks"}
    assert at(schedule=schedule) == {
        "classifier": 0,
        "pooler.dense": 0,
        "encoder.layer.3.output.dense": 2,
        "encoder.layer.2.output.dense": 2,
        "encoder.layer.1.output.dense": 4,
        "encoder.layer.0.output.dense": 4,
    }


def test_what_is_frozen_for_good_stays_so_when_everything_opens() -> None:
    found = at(modules="embeddings", schedule={"0": "head", "1.5": "all"})
    assert "embeddings.word_embeddings" not in found and len(found) == len(NAMES) - 1
    assert set(at(modules=["embeddings", "bottom 2 blocks"]).values()) == {0}


def test_a_phase_without_news_is_told() -> None:
    options = FreezeOptions.model_validate({"schedule": {"0": "all", "3": "head"}})
    assert "freeze.schedule.3: opens nothing" in openings(options, NAMES).notices[0]


def test_a_model_without_anything_to_train_is_refused() -> None:
    for options in ({"modules": "all"}, {"modules": "head", "schedule": {"0": "head", "1": "blocks"}}):
        with pytest.raises(BadValue, match="nothing of the model would train"):
            at(**options)


def test_epochs_become_steps_and_late_ones_are_told() -> None:
    steps, lines = opening_steps({"a": 0, "b": 1.5, "c": 9}, steps_per_epoch=10, total_steps=30)
    assert steps == {"a": 0, "b": 15}
    assert lines == ["freeze.schedule.9: never reached, the run ends at epoch 3"]


@pytest.mark.parametrize(
    ("overrides", "key", "words"),
    [
        (["freeze.modules=head", "adapter=lora"], "freeze.modules", "method lora freezes the whole model"),
        (["freeze.schedule={0: head, 1: all}", "backend=zero3_nvme"], "backend.name", "not proven"),
        (["freeze.schedule={x: head, 0: head}"], "freeze.schedule.x", "no epoch"),
        (["freeze.schedule={-1: head, 0: head}"], "freeze.schedule.-1", "no epoch"),
        (["freeze.schedule={1: head}"], "freeze.schedule", "nothing opens at epoch 0"),
        (["freeze.schedule={0: [], 1: all}"], "freeze.schedule.0", "opens nothing"),
        (["freeze.modules=encoder.layer[:8]"], "freeze.modules", "slice"),
    ],
)
def test_what_cannot_be_is_told(write: Any, refuse: Any, overrides: list[str], key: str, words: str) -> None:
    problems = refuse(write(), *overrides).problems
    found = [problem for problem in problems if problem.what.startswith(f"{key}:")]
    assert len(found) == 1 and words in found[0].what and found[0].type


def test_an_epoch_behind_the_end_has_no_effect(write: Any) -> None:
    loaded = load_recipe(str(write()), ["freeze.schedule={0: head, 7: all}", "num_train_epochs=3"])
    assert any("freeze.schedule.7: has no effect" in notice for notice in loaded.notices)


def test_a_schedule_replaces_an_inherited_one_as_a_whole(write: Any) -> None:
    parent = write("freeze: {schedule: {0: head, 2: top 2 blocks, 6: all}}\n", name="parent.yaml")
    child = write(whole=f"extends: {parent}\nfreeze: {{schedule: {{0: classifier, 4: all}}}}\n")
    schedule = load_recipe(str(child)).recipe.freeze.schedule
    assert schedule == {"0": ("classifier",), "4": ("all",)}
    typed = load_recipe(str(child), ["freeze.schedule={0: pooler}"]).recipe.freeze.schedule
    assert typed == {"0": ("pooler",)}
    assert load_recipe(str(child), ["freeze.schedule={}"]).recipe.freeze.schedule == {}
    assert load_recipe(str(child), ["learning_rate=1e-5"]).recipe.freeze.schedule == schedule


def test_one_word_is_a_section(write: Any) -> None:
    assert load_recipe(str(write()), ["freeze=embeddings"]).recipe.freeze.modules == ("embeddings",)
