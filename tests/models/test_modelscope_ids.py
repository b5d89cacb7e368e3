"""Which models are known on ModelScope, and when the known id counts."""

import pytest

from launcher.models.modelscope_ids import known_id
from launcher.models.options import ModelOptions
from launcher.recipe.library import names
from launcher.recipe.load import load_recipe

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize("name", [each for each in names() if each != "quickstart_lm"])
def test_a_shipped_recipes_model_is_known_there(name: str) -> None:
    """SmolLM2, of quickstart_lm, comes as a package: no page names it on ModelScope."""
    assert load_recipe(name).recipe.model.on_modelscope


def test_another_model_never_keeps_the_id_of_the_recipes_own() -> None:
    asked = ["model.model_name_or_path=Qwen/Qwen3-4B"]
    assert load_recipe("llama3.1_8b_qlora_3090", asked).recipe.model.on_modelscope == "Qwen/Qwen3-4B"
    asked = ["model.model_name_or_path=some/other"]
    assert load_recipe("llama3.1_8b_qlora_3090", asked).recipe.model.on_modelscope is None


def test_a_revision_or_a_single_file_of_the_hub_has_no_known_id_there() -> None:
    assert ModelOptions(model_name_or_path=LLAMA).on_modelscope == known_id(LLAMA)
    assert ModelOptions(model_name_or_path=LLAMA, revision="abc").on_modelscope is None
    assert ModelOptions(model_name_or_path=LLAMA, gguf_file="a.gguf").on_modelscope is None
    given = ModelOptions(model_name_or_path=LLAMA, revision="abc", modelscope_id="Mine/model")
    assert given.on_modelscope == "Mine/model"
