"""What the schema finds, in plain words: the key, the value as typed, what the key takes, what to type."""

import re
from collections.abc import Mapping, Sequence

from pydantic_core import ErrorDetails

from launcher.errors import Problem
from launcher.recipe.dump import written
from launcher.recipe.keys import PIECES, is_free, known
from launcher.recipe.meant import OTHER_VALUES, meant_number
from launcher.recipe.provenance import Leaf, Origin
from launcher.registry import nearest

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list: [a, b]",
    "list": "a list: [a, b]",
    "dict": "a mapping: {name: text}",
    "model": "a section of keys",
    "union": "one of the known names",
    "missing": "an amount with its unit",
    "extra": "an amount with its unit",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("below", "lt"),
}


def path_of(location: Sequence[int | str]) -> tuple[str, ...]:
    """The key of an error's place: without the names of pieces, list positions and inner types."""
    parts = [part for part in location if isinstance(part, str)]
    if parts[0] in PIECES and len(parts) > 1 and parts[1] in PIECES[parts[0]][1].names():
        del parts[1]
    if len(parts) > 2 and is_free(tuple(parts[:2])):
        return tuple(parts[:3])
    return tuple(parts[:2]) if tuple(parts[:2]) in known() else tuple(parts[:1])


def expectation(error: ErrorDetails) -> str:
    """What one error says the value should be."""
    context = error.get("ctx", {})
    kind = error["type"]
    if kind in _BOUNDS:
        word, name = _BOUNDS[kind]
        return f"{word} {context[name]:g}"
    if kind == "literal_error":
        return _choices(str(context["expected"]))
    if kind == "value_error":
        return str(context.get("error", error["msg"]))
    if kind == "string_too_short":
        return "some text"
    return _KINDS.get(kind.split("_")[0], "another value")


def _choices(expected: str) -> str:
    names = re.findall(r"'([^']*)'", expected)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def problem_of(
    path: tuple[str, ...], errors: Sequence[ErrorDetails], leaf: Leaf | None, file: Origin
) -> Problem:
    """The one finding for a key, out of all errors that the schema has about it."""
    key = ".".join(path)
    if leaf is None:
        return _missing(key, path, file)
    right = " or ".join(dict.fromkeys(expectation(error) for error in errors))
    if key in _KEYS and isinstance(leaf.value, list | str):
        right = _KEYS[key]
    return Problem(
        where=leaf.origin.place(),
        what=f"{key}: '{leaf.typed}' cannot be used",
        right=right,
        type=_assign(leaf, _example(path, leaf, errors)),
    )


def _missing(key: str, path: tuple[str, ...], file: Origin) -> Problem:
    field = known().get(path)
    return Problem(
        where=file.file and file.place().rpartition(":")[0],
        what=f"{key}: is not given, and has no default",
        right=(field.description if field and field.description else "a value").rstrip("."),
        type=f"{path[0]}: {{{path[-1]}: ...}}" if len(path) > 1 else f"{key}: {_EXAMPLES.get(key, '...')}",
    )


# What these take, in words that the types do not give.
_FILES = "one file, or a folder or a pattern of files such as parts/*.csv"
_KEYS = {
    "data.train_file": _FILES,
    "data.eval_file": _FILES,
    "data.max_length": "a number of tokens, or {percentile: 95, cap: 512}",
    "hardware.gpus": "how many cards; which ones says CUDA_VISIBLE_DEVICES",
}
_EXAMPLES = {
    "data.train_file": "parts/*.csv",
    "data.eval_file": "eval.csv",
    "task": "classification",
    "training.eval_steps": "200 steps",
    "training.save_steps": "200 steps",
    "data.eval_fraction": "0.1",
    "data.labels": "[negative, positive]",
    "training.max_steps": "1000",
}


def _example(path: tuple[str, ...], leaf: Leaf, errors: Sequence[ErrorDetails]) -> str:
    """A value that the key takes: the nearest choice, the default, or its lowest number."""
    expected = [str(error.get("ctx", {}).get("expected")) for error in errors]
    choices = [name for text in expected for name in re.findall(r"'([^']*)'", text)]
    if (other := OTHER_VALUES.get(leaf.typed.strip().lower())) in choices and other:
        return other
    if choices and (close := nearest(leaf.typed, choices)):
        return close
    field = known().get(path)
    if leaf.key == "hardware.gpus" and re.fullmatch(r"\d+(,\d+)+", leaf.typed):
        return f"{leaf.typed.count(',') + 1}   (with CUDA_VISIBLE_DEVICES={leaf.typed} in front)"
    if leaf.value == -1 and field is not None and field.default is None:
        return "null"  # elsewhere -1 says: not limited
    if field is not None and (meant := meant_number(leaf.typed, field)):
        return meant
    default = field.default if field is not None else None
    if isinstance(default, str | int | float):
        return written(default)
    return choices[0] if choices else _EXAMPLES.get(leaf.key, "...")


def _assign(leaf: Leaf, value: str) -> str:
    if leaf.origin.kind in ("command line", "starter"):
        return f"{leaf.key}={value}"
    return f"{leaf.path[-1]}: {value}"


def group(errors: Sequence[ErrorDetails]) -> Mapping[tuple[str, ...], list[ErrorDetails]]:
    """The errors by key, in the order of the schema."""
    groups: dict[tuple[str, ...], list[ErrorDetails]] = {}
    for error in errors:
        groups.setdefault(path_of(error["loc"]), []).append(error)
    return groups


def wrong_kind(leaf: Leaf, right: str) -> Problem:
    """The finding for a value that the schema would take, or bend into another one in silence."""
    return Problem(
        where=leaf.origin.place(),
        what=f"{leaf.key}: '{leaf.typed}' cannot be used",
        right=right,
        type=_assign(leaf, _example(leaf.path, leaf, ())),
    )
