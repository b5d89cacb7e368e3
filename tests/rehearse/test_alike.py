"""Which rehearsals the library needs."""

from pathlib import Path

import pytest

from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, cell
from launcher.recipe import library
from launcher.recipe.load import load_recipe
from launcher.rehearse.alike import NUM_RANKS, Cell, cells, what_is_rehearsed


@pytest.fixture(scope="module")
def asked() -> list[Cell]:
    return cells(library.names())


def test_every_recipe_is_rehearsed_alone_and_on_a_backend_that_shards(asked: list[Cell]) -> None:
    for name in library.names():
        backends = [each.backend for each in asked if name in each.recipes]
        alone, sharding = sorted(backends, key=lambda each: each != "single_gpu")
        assert alone == "single_gpu"
        facts = BACKENDS.get(sharding).sharding
        assert facts.gradients or facts.parameters or facts.optimizer_states


def test_no_cell_is_refused(asked: list[Cell]) -> None:
    for each in asked:
        assert each.num_ranks == (1 if each.backend == "single_gpu" else NUM_RANKS)
        for name in each.recipes:
            recipe = load_recipe(name).recipe
            found = cell(recipe.adapter.method, each.backend, quantised=recipe.model.is_quantised)
            assert not isinstance(found, Refused)


def test_a_variant_for_another_card_shares_its_parents_rehearsal(asked: list[Cell]) -> None:
    alone = [each for each in asked if each.backend == "single_gpu"]
    assert any({"lora_7b_3090", "lora_7b_5090"} <= set(each.recipes) for each in alone)
    assert not any({"full_0.5b_v100", "full_0.5b_a100"} <= set(each.recipes) for each in alone)  # precision


@pytest.mark.parametrize("words", [["lora_r=4"], ["activation_checkpointing=false"], ["precision=fp32"]])
def test_whatever_differs_in_training_is_another_rehearsal(words: list[str], tmp_path: Path) -> None:
    key, _, value = words[0].partition("=")
    section = "adapter" if key == "lora_r" else "training"
    file = tmp_path / "variant.yaml"
    file.write_text(
        f"summary: A variant of one key\nextends: qwen3_8b_lora_3090\n{section}: {{{key}: {value}}}\n"
    )
    parent = what_is_rehearsed("qwen3_8b_lora_3090", "single_gpu")
    assert what_is_rehearsed(str(file), "single_gpu") != parent
    file.write_text("summary: Another card\nextends: qwen3_8b_lora_3090\nhardware: {gpu: h20}\n")
    assert what_is_rehearsed(str(file), "single_gpu") == parent
