"""The schema for editors takes what the launcher takes, and refuses what it refuses."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from launcher.recipe import library
from launcher.recipe.json_schema import schema
from launcher.recipe.keys import known

MINIMAL: dict[str, Any] = {"task": "classification", "model": "some/model", "data": {"train_file": "x.csv"}}


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def errors(validator: jsonschema.Draft202012Validator, more: dict[str, Any]) -> list[str]:
    return [error.message for error in validator.iter_errors({**MINIMAL, **more})]


def test_every_shipped_recipe_is_valid(validator: jsonschema.Draft202012Validator) -> None:
    files = [library.find(name) for name in library.names()]
    assert len(files) > 7
    read = YAML(typ="safe", pure=True).load
    wrong = {
        path.name: [error.message for error in validator.iter_errors(json.loads(json.dumps(content)))]
        for path in files
        if (content := read(path.read_text(encoding="utf-8")))
    }
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"adapter": "lora"},
        {"adapter": {"lora_r": 4}},
        {"adapter": {"method": "lora", "lora_target_modules": ["q_proj"]}},
        {"backend": {"name": "zero2", "reduce_bucket_size": 10}},
        {"freeze": "embeddings"},
        {"freeze": {"schedule": {"0": "head", "2": ["top 2 blocks"]}}},
        {"hardware": "rtx3090"},
        {"tracking": "tensorboard"},
        {"tracking": {"report_to": "none"}},
        {"training": {"eval_steps": 200, "save_steps": "0.5 epochs"}},
        {"training": {"eval_steps": "no", "save_steps": "epoch", "per_device_train_batch_size": "auto"}},
        {"training": {"max_steps": None}},
        {"data": {"train_file": "x.csv", "max_length": {"percentile": 95, "cap": 64}}},
    ],
    ids=str,
)
def test_what_can_be_written_is_valid(
    more: dict[str, Any], validator: jsonschema.Draft202012Validator
) -> None:
    assert errors(validator, more) == []


@pytest.mark.parametrize(
    "more",
    [
        {"trainig": {}},
        {"training": {"learning_rte": 1e-5}},
        {"training": {"learning_rate": "fast"}},
        {"training": {"eval_steps": "sometimes"}},
        {"training": {"adam_beta1": 2}},
        {"adapter": "lara"},
        {"adapter": {"method": "lora", "bottleneck_size": 4}},
        {"backend": {"name": "zero9"}},
        {"tracking": "nobody"},
        {"task": "poetry"},
    ],
    ids=str,
)
def test_what_cannot_be_written_is_not(
    more: dict[str, Any], validator: jsonschema.Draft202012Validator
) -> None:
    assert errors(validator, more)


def test_a_recipe_needs_its_sections_or_a_parent(validator: jsonschema.Draft202012Validator) -> None:
    assert list(validator.iter_errors({"task": "classification"}))
    assert not list(validator.iter_errors({"extends": "quickstart", "training": {"seed": 1}}))


def test_every_key_of_every_section_is_there() -> None:
    text = json.dumps(schema())
    assert [path for path in known() if f'"{path[-1]}": ' not in text] == []


def test_no_reference_leads_elsewhere() -> None:
    assert "$ref" not in json.dumps(schema())


def test_the_file_for_editors_is_up_to_date(root: Path) -> None:
    written = json.loads((root / "docs" / "recipe.schema.json").read_text(encoding="utf-8"))
    assert written == schema(), "type: python scripts/make_reference.py"
