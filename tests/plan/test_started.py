"""What an FSDP configuration of Accelerate's adds to a recipe, and what it may not contradict."""

from typing import Any

import pytest

from launcher.errors import Conflict
from launcher.facts import RunArguments, Starter
from launcher.plan.started import Started, resolve_started

BLOCKS = ("BertLayer", "BertPooler")


def started(settings: dict[str, Any], *overrides: str) -> Started:
    """Two processes of fsdp2, started by accelerate with these settings in its file."""
    starter = Starter(name="accelerate", world_size=2, backend="fsdp2", settings=settings)
    return resolve_started(RunArguments(recipe="quickstart", overrides=overrides), starter)


def test_b015_wrap_classes_of_the_file_are_taken_over() -> None:
    options = started({"backend.wrap_classes": BLOCKS}).loaded.recipe.backend.model_dump()
    assert options["wrap_classes"] == BLOCKS


def test_b015_the_same_classes_twice_are_no_conflict_and_others_are() -> None:
    found = started({"backend.wrap_classes": BLOCKS}, "wrap_classes=[BertLayer, BertPooler]")
    assert found.loaded.recipe.backend.model_dump()["wrap_classes"] == BLOCKS
    with pytest.raises(Conflict, match="backend.wrap_classes"):
        started({"backend.wrap_classes": BLOCKS}, "wrap_classes=[GPT2Block]")


def test_b016_checkpointing_in_the_file_alone_is_done_and_in_both_refused() -> None:
    settings = {"training.activation_checkpointing": True}
    assert started(settings).loaded.recipe.training.activation_checkpointing is True
    with pytest.raises(Conflict, match="both on"):
        started(settings, "activation_checkpointing=true")
    assert started({}, "activation_checkpointing=true").loaded.recipe.training.activation_checkpointing


def test_a_starters_precision_still_meets_the_recipes() -> None:
    starter = Starter(name="accelerate", mixed_precision="bf16", backend="single_gpu")
    taken = resolve_started(RunArguments(recipe="quickstart"), starter)
    assert taken.loaded.recipe.training.precision == "bf16"
    with pytest.raises(Conflict, match="training.precision"):
        resolve_started(RunArguments(recipe="quickstart", overrides=("precision=fp16",)), starter)
