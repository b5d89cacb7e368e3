"""The shipped configurations: every model that a shipped recipe names, under names that can be found."""

import subprocess
import sys

import pytest
from transformers import AutoConfig

from launcher.models import catalogue
from launcher.models.read_shape import known_types, shape_of
from launcher.recipe import library
from launcher.recipe.load import load_recipe
from tests.models import meta


@pytest.mark.parametrize("name", library.names())
def test_every_shipped_recipes_model_is_in_the_catalogue(name: str) -> None:
    recipe = load_recipe(name).recipe
    found = catalogue.config(recipe.model.model_name_or_path)
    assert found is not None
    assert shape_of(found, task=recipe.task).num_params > 1_000_000


def test_no_hub_id_stands_twice_and_every_type_is_known() -> None:
    names = [name.lower() for name in catalogue.names()]
    assert len(set(names)) == len(names) > 200
    assert {entry.config["model_type"] for entry in catalogue.entries()} == set(known_types())


def test_case_does_not_matter_and_the_entry_cannot_be_changed_by_its_reader() -> None:
    found = catalogue.config("qwen/qwen2.5-7b-instruct")
    assert found is not None and found["hidden_size"] == 3584
    found["hidden_size"] = 1
    assert catalogue.config("Qwen/Qwen2.5-7B-Instruct") != found
    assert catalogue.config("nobody/nothing") is None


def test_names_that_look_alike_are_offered() -> None:
    assert "meta-llama/Llama-3.1-8B" in catalogue.nearest_names("meta-llama/Llama-3.1-7B")
    assert catalogue.nearest_names("zzzz") == []


@pytest.mark.parametrize(
    "entry",
    [each for each in catalogue.entries() if each.config["model_type"] not in meta.REMOTE],
    ids=meta.label,
)
def test_keys_are_those_of_the_real_configuration_class(entry: catalogue.Entry) -> None:
    """A key that the class does not know would be kept silently, and mean nothing."""
    real = type(AutoConfig.for_model(entry.config["model_type"]))(**entry.config)
    known = set(type(real)().to_dict()) | set(type(real).attribute_map)
    optional = {"n_inner", "head_dim", "num_key_value_heads", "position_buckets", "norm_rel_ebd"}
    optional |= {"share_att_key", "pos_att_type", "conv_kernel_size", "conv_act"}
    assert set(entry.config) <= known | optional
    assert all(getattr(real, key) == value for key, value in entry.config.items())


def test_reading_needs_no_heavy_library() -> None:
    code = (
        "import sys; from launcher.models import catalogue, config_file, read_shape\n"
        "read_shape.shape_of(catalogue.config('gpt2')); read_shape.shape_of({'model_type': 'llama'})\n"
        "heavy = {'torch', 'transformers', 'peft', 'accelerate', 'datasets', 'numpy', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
