"""What the verbs that take a recipe and `key=value` have in common: its name, `--backend` and `--gpus`."""

from typing import Any

from launcher.errors import BadValue, Problem
from launcher.process.arguments import Reader


def recipe_named(reader: Reader, *, example: str) -> str:
    """The recipe that was typed. Raises BadValue with an example where there is none."""
    if "recipe" in reader.options:
        return reader.options["recipe"]
    right = "a name from `launcher ls`, or a file"
    raise BadValue(Problem(what="no recipe was named", right=right, type=example))


def recipe_settings(reader: Reader) -> dict[str, Any]:
    """What `--backend` and `--gpus` say of the recipe, by its keys. Raises for what cannot be meant."""
    from launcher.backends.options import BACKENDS

    found: dict[str, Any] = {}
    if "backend" in reader.options:
        found["backend.name"] = BACKENDS.get(reader.options["backend"], "--backend").name
    if (gpus := num_cards(reader)) is not None:
        found["hardware.gpus"] = gpus
    return found


def num_cards(reader: Reader) -> int | None:
    """`--gpus`, None where it was not typed. Raises BadValue."""
    text = reader.options.get("gpus")
    if text is None:
        return None
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise BadValue(
        Problem(where="--gpus", what=f"'{text}' is no number of cards", right="1 or more", type="--gpus 2")
    )
