"""B061: on fewer cards the same batch, and what it would take there."""

from launcher.plan.replanned import memory_words
from launcher.recipe.load import load_recipe
from launcher.recipe.schema import Recipe
from launcher.units import GIB


def recipe(*words: str, gpus: int = 4) -> Recipe:
    return load_recipe("lora_7b_3090", words, extra={"hardware.gpus": gpus}).recipe


def test_b061_the_replanned_run_has_its_predicted_memory() -> None:
    said = memory_words(recipe(), 2)
    assert said.endswith("a card predicted")
    assert 13.2 * GIB < float(said.split()[1]) * GIB < 23.7 * GIB


def test_nothing_is_said_where_nothing_can_be_told() -> None:
    assert memory_words(recipe("model_name_or_path=someone/unknown-13b"), 2) == ""
    assert memory_words(recipe("hardware.gpu=null"), 2) == ""
    assert memory_words(recipe(), 3) == ""
