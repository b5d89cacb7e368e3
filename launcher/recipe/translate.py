"""One layer of given values (a file, the command line) brought to our keys.

Other tools' names are translated with one notice each; names that cannot be taken are refused with the
reason; what is left must be known. Values are not judged here.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from launcher.errors import Problem
from launcher.recipe.aliases import ACCUMULATION, ALIASES, LEFT_OUT, NOT_NEEDED, REFUSED
from launcher.recipe.document import Entry
from launcher.recipe.keys import SHORTHANDS, fields_of, is_free, is_known, sections
from launcher.recipe.provenance import Leaf, Origin
from launcher.recipe.suggest import as_typed, unknown_key


@dataclass(kw_only=True)
class Layer:
    """One source's values under our keys, and what was found on the way."""

    leaves: dict[tuple[str, ...], Leaf] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    accumulation: list[Leaf] = field(default_factory=list)

    def add(self, leaf: Leaf, typed: str) -> None:
        """Take the value; two different values for one key are a conflict."""
        earlier = self.leaves.get(leaf.path)
        if earlier is not None and str(earlier.value) != str(leaf.value):
            self.problems.append(_conflict(earlier, leaf, typed))
        self.leaves[leaf.path] = leaf


def _conflict(first: Leaf, second: Leaf, typed: str) -> Problem:
    values = f"'{first.typed}' ({first.origin.place()}) and '{second.typed}'"
    return Problem(
        where=second.origin.place(),
        what=f"{typed}: {second.key} is given twice: {values}",
        right=f"one value for {second.key}",
        type=f"{as_typed(second, second.path)}, and the other one removed",
    )


def flatten(entries: dict[str, Entry], origin: Origin) -> Iterable[Leaf]:
    """The leaves of a file's entries, a section that is one word unfolded, `extends` left out."""
    for name, entry in entries.items():
        if name == "extends":
            continue
        here = replace(origin, line=entry.line)
        if isinstance(entry.value, dict) and (name in sections() or is_free((name,))):
            yield from _inside((name,), entry.value, origin)
        elif entry.value is not None or name not in sections():
            yield Leaf(path=(name,), value=entry.plain(), raw=entry.raw, origin=here)


def _inside(path: tuple[str, ...], entries: dict[str, Entry], origin: Origin) -> Iterable[Leaf]:
    for name, entry in entries.items():
        inner = (*path, name)
        if isinstance(entry.value, dict) and entry.value and is_free(inner):
            yield from _inside(inner, entry.value, origin)
        else:
            yield Leaf(
                path=inner, value=entry.plain(), raw=entry.raw, origin=replace(origin, line=entry.line)
            )


def translate(leaves: Iterable[Leaf]) -> Layer:
    """Bring every leaf to our keys. Problems and notices are collected in the layer."""
    layer = Layer()
    for leaf in leaves:
        _place(leaf, layer)
    return layer


def _place(leaf: Leaf, layer: Layer) -> None:
    name = leaf.path[-1]
    if len(leaf.path) == 1 and name in sections():
        _unfold(leaf, layer)
    elif is_known(leaf.path):
        layer.add(leaf, leaf.key)
    elif name in ACCUMULATION:
        layer.accumulation.append(leaf)
    elif name.lower() in REFUSED:
        _refuse(leaf, layer)
    elif name in NOT_NEEDED:
        layer.notices.append(f"{leaf.origin.place()}  {name}: not needed here, left out")
    elif name in ALIASES:
        _rename(leaf, layer)
    else:
        layer.problems.append(unknown_key(leaf))


def _unfold(leaf: Leaf, layer: Layer) -> None:
    """`backend: zero2` is `backend: {name: zero2}`; a list is no section."""
    section = leaf.path[0]
    key = SHORTHANDS.get(section)
    if key and (section == "tracking" or isinstance(leaf.value, str)):
        layer.add(replace(leaf, path=(section, key)), section)
        return
    match = re.fullmatch(r"([a-z_]+)\s*[:=：]\s*(\S.*)", leaf.value) if isinstance(leaf.value, str) else None
    if match and match[1] in fields_of(section):
        what = f"{section}: '{leaf.typed}' is no section: a space is missing behind the colon, or the colon"
        typed = f"{section}: {{{match[1]}: {match[2]}}}"
        right = f"{match[1]}: {match[2]} in a line of its own, indented below {section}:"
        layer.problems.append(Problem(where=leaf.origin.place(), what=what, right=right, type=typed))
        return
    layer.problems.append(
        Problem(
            where=leaf.origin.place(),
            what=f"{section}: '{leaf.typed}' is no section",
            right=f"{'a name, or ' if key else ''}keys below {section}:",
            type=f"{section}: {{{key or next(iter(fields_of(section)))}: ...}}",
        )
    )


def _refuse(leaf: Leaf, layer: Layer) -> None:
    name, refusal = leaf.path[-1], REFUSED[leaf.path[-1].lower()]
    if leaf.value in (False, None) and name.startswith("load_in_"):
        layer.notices.append(f"{leaf.origin.place()}  {name}: {leaf.typed} is always so here, left out")
        return
    layer.problems.append(
        Problem(
            where=leaf.origin.place(),
            what=f"{leaf.key}: '{leaf.typed}' is not taken: {refusal.why}",
            right=refusal.right,
            type=refusal.type.format(value=leaf.raw),
        )
    )


def _rename(leaf: Leaf, layer: Layer) -> None:
    name, alias = leaf.path[-1], ALIASES[leaf.path[-1]]
    path = tuple(alias.key.split("."))
    value, reason = _convert(alias.convert, leaf.value) if leaf.value is not None else (LEFT_OUT, "")
    if reason:
        what = f"{leaf.key}: '{leaf.typed}' cannot be read as {alias.key}"
        layer.problems.append(
            Problem(
                where=leaf.origin.place(), what=what, right=reason, type=f"{path[0]}: {{{path[-1]}: ...}}"
            )
        )
    elif value is LEFT_OUT:
        layer.notices.append(f"{leaf.origin.place()}  {name}: {leaf.typed} says nothing here, left out")
    else:
        moved = replace(leaf, path=path, value=value, raw=leaf.raw if value == leaf.value else value)
        layer.add(moved, leaf.key)
        layer.notices.append(
            f"{leaf.origin.place()}  {name} is called {alias.key} here: read as {moved.typed}"
        )


def _convert(convert: Any, value: Any) -> tuple[Any, str]:
    try:
        return convert(value), ""
    except ValueError as error:
        return None, str(error)
