"""The schema is composed from its pieces, and says something about every key."""

import pytest
from pydantic import ValidationError

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.recipe.keys import known, sections
from launcher.recipe.schema import Recipe

JOB = {"task": "classification", "model": {"model_name_or_path": "m"}, "data": {"train_file": "a.csv"}}


@pytest.mark.parametrize("name", METHODS.names())
def test_every_registered_method_is_a_choice(name: str) -> None:
    recipe = Recipe.model_validate({**JOB, "adapter": name})
    assert type(recipe.adapter) is METHODS.get(name).options


@pytest.mark.parametrize("name", BACKENDS.names())
def test_every_registered_backend_is_a_choice(name: str) -> None:
    recipe = Recipe.model_validate({**JOB, "backend": {"name": name}})
    assert type(recipe.backend) is BACKENDS.get(name).options


def test_a_recipe_is_frozen_and_refuses_unknown_keys() -> None:
    recipe = Recipe.model_validate(JOB)
    with pytest.raises(ValidationError):
        recipe.output_dir = "elsewhere"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Recipe.model_validate({**JOB, "nothing": 1})


def test_every_key_is_described_in_one_sentence() -> None:
    top = set(sections())
    for path, field in known().items():
        assert field.description and field.description.endswith("."), path
    assert {path[0] for path in known()} >= top
