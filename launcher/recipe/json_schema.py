"""The recipe as a JSON schema for editors, made from the option models.

What our readers accept besides the models' own types stands here: a section of one word, intervals as they
are typed, one tracker without brackets, and recipes that take the rest from `extends`.
"""

from collections.abc import Mapping
from typing import Any

from launcher.recipe.keys import PIECES, SHORTHANDS, options_of, sections
from launcher.recipe.schema import Recipe

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_INTERVAL = {
    "description": "An interval: 200 steps, 5000 rows, 0.5 epochs, epoch, or no.",
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?\s*(step|row|epoch)s?\s*$"},
        {"type": "string", "pattern": r"^[0-9]+$"},
        {"enum": ["no", "never", "epoch", False]},
    ],
}


def schema() -> dict[str, Any]:
    """The whole schema, without references to other documents."""
    properties: dict[str, Any] = {
        "extends": {"type": "string", "description": "The recipe that this one changes."}
    }
    for name in Recipe.model_fields:
        properties[name] = _section(name) if name in sections() else _top(name)
    return {
        "$schema": _DRAFT,
        "title": "Fine-tuning recipe",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "anyOf": [{"required": ["extends"]}, {"required": ["task", "model", "data"]}],
    }


def _top(name: str) -> Any:
    return _tidy(Recipe.model_json_schema()["properties"][name], {})


def _section(name: str) -> dict[str, Any]:
    """One word, or the keys; of a method or backend, the keys of any one of them."""
    models = options_of(name)
    objects = []
    for model in models:
        found = model.model_json_schema()
        objects.append(
            _tidy({key: value for key, value in found.items() if key != "$defs"}, found.get("$defs", {}))
        )
    word: dict[str, Any] = {"type": "string"}
    if name in PIECES:
        word["enum"] = PIECES[name][1].names()
    if name == "tracking":
        word = objects[0]["properties"][SHORTHANDS[name]]
        word = {key: value for key, value in word.items() if key != "default"}
    choices = [*([word] if name in SHORTHANDS else []), *objects]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _tidy(node: Any, definitions: Mapping[str, Any]) -> Any:
    """Without titles, references and required keys; with what our readers accept besides."""
    if isinstance(node, list):
        return [_tidy(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        if name == "Every":
            return {**_INTERVAL, **rest}
        return _tidy({**definitions[name], **rest}, definitions)
    kept = {key: value for key, value in node.items() if key not in ("title", "required", "discriminator")}
    if "properties" in kept:
        properties = {key: _tidy(value, definitions) for key, value in kept["properties"].items()}
        kept = {key: value for key, value in kept.items() if key != "properties"}
        return {
            **{key: _tidy(value, definitions) for key, value in kept.items()},
            "properties": {key: _field(key, value) for key, value in properties.items()},
        }
    return {key: value if key == "default" else _tidy(value, definitions) for key, value in kept.items()}


def _field(name: str, node: dict[str, Any]) -> dict[str, Any]:
    """One tracker may stand without brackets."""
    if name != "report_to":
        return node
    rest = {key: value for key, value in node.items() if key in ("description", "default")}
    return {**rest, "anyOf": [node["items"], {key: value for key, value in node.items() if key not in rest}]}
