"""The recipe as a JSON schema for editors, made from the option models.

What our readers accept besides the models' own types stands here: a section of one word, intervals as they
are typed, one word for a list of one, and recipes that take the rest from `extends`.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BeforeValidator

from launcher.options import Options
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
    objects = [_object(model) for model in options_of(name)]
    word: dict[str, Any] = {"type": "string"}
    if name in PIECES:
        word["enum"] = PIECES[name][1].names()
    elif name in SHORTHANDS:
        field = objects[0]["properties"][SHORTHANDS[name]]
        word = {key: value for key, value in field.items() if key not in ("default", "description")}
    choices = [*([word] if name in SHORTHANDS else []), *objects]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _object(model: type[Options]) -> dict[str, Any]:
    found = model.model_json_schema()
    found = _tidy(found, found.pop("$defs", {}))
    for name, info in model.model_fields.items():
        if _is_bent(info.annotation, info.metadata):
            node = found["properties"][name]
            kept = {key: node.pop(key) for key in ("default", "description") if key in node}
            found["properties"][name] = {**kept, **_bent(node)}
    return dict(found)


def _is_bent(annotation: Any, metadata: Iterable[Any]) -> bool:
    """Whether a reader stands in front of the type that takes one word for a list of one."""
    parts = [*metadata, *(get_args(annotation) if get_origin(annotation) is Annotated else ())]
    inner = [each for each in get_args(annotation) if each is not annotation]
    return any(isinstance(part, BeforeValidator) for part in parts) or any(
        _is_bent(each, ()) for each in inner
    )


def _bent(node: Any) -> Any:
    """Every list of words also as one word."""
    if not isinstance(node, dict):
        return node
    if node.get("type") == "array":
        return {"anyOf": [node["items"], node]}
    return {key: _bent(value) for key, value in node.items()}


def _tidy(node: Any, definitions: Mapping[str, Any]) -> Any:
    """Without titles, references and required keys; intervals as they are typed."""
    if isinstance(node, list):
        return [_tidy(each, definitions) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**_INTERVAL, **rest} if name == "Every" else _tidy({**definitions[name], **rest}, definitions)
    kept = {key: value for key, value in node.items() if key not in ("required", "discriminator")}
    kept.pop("title", None) if isinstance(kept.get("title"), str) else None
    return {key: value if key == "default" else _tidy(value, definitions) for key, value in kept.items()}
