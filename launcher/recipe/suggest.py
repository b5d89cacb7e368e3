"""What an unknown key probably means: the same name in another section, or the nearest name."""

from launcher.errors import Problem
from launcher.recipe.aliases import ALIASES
from launcher.recipe.keys import PIECES, fields_of, known, options_of, sections
from launcher.recipe.provenance import Leaf
from launcher.registry import nearest

_FAR = 0.75  # a name in a known section rarely means a key of another one
_BY_NAME = ("stage", "zero_stage", "offload", "cpu_offload", "offload_optimizer", "offload_param")


def as_typed(leaf: Leaf, path: tuple[str, ...]) -> str:
    """The line or argument to type for the value of `leaf` under another key."""
    if leaf.origin.kind in ("command line", "starter"):
        return f"{'.'.join(path)}={leaf.typed}"
    return (
        f"{path[-1]}: {leaf.typed}"
        if len(path) == 1
        else f"{path[0]}: {{{': '.join([path[-1], leaf.typed])}}}"
    )


def unknown_key(leaf: Leaf, piece: str | None = None) -> Problem:
    """The finding for a key that no section has, or that this section's piece has not."""
    other = _other_piece(leaf, piece) or _in_the_backends_name(leaf)
    if other:
        return other
    meant = _meant(leaf.path)
    right = f"{'.'.join(meant)} is the nearest key" if meant else _all_keys(leaf.path)
    if meant and meant[-1] == leaf.path[-1]:
        right = (
            f"{leaf.path[-1]} belongs to {meant[0]}: {'.'.join(meant)}"
            if len(meant) > 1
            else f"{meant[0]} stands by itself"
        )
    return Problem(
        where=leaf.origin.place(),
        what=f"{leaf.key}: unknown key '{leaf.path[-1]}'",
        right=right,
        type=as_typed(leaf, meant) if meant else "launcher cat quickstart",
    )


def _in_the_backends_name(leaf: Leaf) -> Problem | None:
    """Stage and offload are no options of a backend: they are its name."""
    if leaf.path[0] != "backend" or leaf.path[-1] not in _BY_NAME:
        return None
    stage = leaf.value if leaf.path[-1].endswith("stage") and leaf.value in (1, 2, 3) else 3
    name = f"zero{stage}" if leaf.path[-1].endswith("stage") else "zero3_offload"
    return Problem(
        where=leaf.origin.place(),
        what=f"{leaf.key}: unknown key '{leaf.path[-1]}'",
        right="the backend's name says stage and offload: zero1, zero2, zero2_offload, zero3, zero3_offload",
        type=f"backend: {name}" if leaf.origin.file else f"backend={name}",
    )


def _other_piece(leaf: Leaf, piece: str | None) -> Problem | None:
    section = leaf.path[0]
    if section not in PIECES or leaf.path not in known() or piece is None:
        return None
    choice = PIECES[section][0]
    owners = [
        each.model_fields[choice].default
        for each in options_of(section)
        if leaf.path[-1] in each.model_fields
    ]
    return Problem(
        where=leaf.origin.place(),
        what=f"{leaf.key}: {section} '{piece}' has no {leaf.path[-1]}",
        right=f"{section}.{choice} {' or '.join(owners)} has it",
        type=f"{section}.{choice}={owners[0]}"
        if leaf.origin.kind == "command line"
        else f"{choice}: {owners[0]}",
    )


def _meant(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The known path that an unknown one most probably means."""
    name = path[-1].replace("-", "_")
    same = [each for each in known() if each[-1] == name]
    if same:
        return same[0]
    if own := _of_a_section(path, name):
        return own
    if len(path) > 1 and (close := nearest(name, fields_of(path[0]) if path[0] in sections() else ())):
        return (path[0], close)
    names = {each[-1]: each for each in known()} | {
        other: tuple(alias.key.split(".")) for other, alias in ALIASES.items()
    }
    names |= {section: (section,) for section in sections()}
    close = nearest(name, names, cutoff=_FAR if len(path) > 1 and path[0] in sections() else 0.5)
    return names[close] if close and len(name) > 2 else None


def _of_a_section(path: tuple[str, ...], name: str) -> tuple[str, ...] | None:
    """`adapter.r` is lora_r, `model_dtype` is model.dtype."""
    if len(path) > 1 and path[0] in sections():
        alike = [each for each in fields_of(path[0]) if each.endswith(f"_{name}")]
        usual = [each for each in alike if each.startswith("lora_")]
        return next(((path[0], each) for each in (*usual, *alike)), None)
    first, _, rest = name.partition("_")
    return (first, rest) if first in sections() and rest in fields_of(first) else None


def _all_keys(path: tuple[str, ...]) -> str:
    section = path[0]
    if len(path) > 1 and section in sections():
        return f"keys of {section}: {', '.join(fields_of(section))}"
    tops = dict.fromkeys(each[0] for each in known())
    return f"sections and keys: extends, {', '.join(tops)}"
