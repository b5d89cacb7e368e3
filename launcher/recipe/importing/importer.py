"""From another tool's file to a recipe: recognised, read, carried over, and made to load."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.draft import Carried, Draft, Left, flat
from launcher.recipe.importing.fit import fit
from launcher.recipe.importing.nested_files import sought
from launcher.recipe.importing.source import Source, read_source
from launcher.recipe.overrides import read_overrides
from launcher.recipe.translate import translate


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A recipe's values by dotted key, and what became of every key of the file.

    `to_say` are keys that the file does not tell, with what stands there meanwhile; `quiet` are the file's
    keys whose value is off, empty or a default; `needless` those that need not be said here.
    """

    dialect: Dialect
    source: str
    values: dict[str, Any] = field(hash=False)
    carried: tuple[Carried, ...]
    left: tuple[Left, ...]
    quiet: tuple[str, ...]
    needless: tuple[str, ...]
    notes: tuple[str, ...]
    to_say: tuple[str, ...]


def import_file(
    path: Path, *, dialect: str | None = None, gpus: int | None = None, overrides: Sequence[str] = ()
) -> Imported:
    """Read the file as a recipe. Raises RecipeError for a file that no dialect knows.

    `gpus` is the number of processes that it was started with; `overrides` (key=value) are laid on top.
    """
    source = _with_named_file(read_source(path))
    kind = DIALECTS.get(dialect.replace("-", "_"), "--from") if dialect else recognise(source)
    draft = Draft(dialect=kind, source=source, num_processes=gpus)
    draft.notes += source.notes
    kind.settle(draft)
    draft.apply_rows()
    draft.account()
    if kind.task:
        draft.values.setdefault("task", kind.task)
    _lay_over(draft, overrides)
    fit(draft)
    return Imported(
        dialect=kind,
        source=source.name,
        values=draft.values,
        carried=tuple(draft.carried),
        left=tuple(draft.left),
        quiet=tuple(dict.fromkeys(draft.quiet)),
        needless=tuple(dict.fromkeys(draft.needless)),
        notes=tuple(dict.fromkeys(draft.notes)),
        to_say=tuple(draft.to_say),
    )


def _with_named_file(source: Source) -> Source:
    """`axolotl train job.yaml`: the command's options over the file that it names."""
    command = source.command
    if command is None or not command.file:
        return source
    probe = Draft(dialect=DIALECTS.get("trainer"), source=source)
    path = sought(probe, command.file)
    if path is None:
        note = f"{command.file} is named, and there is no such file: only the command itself was read"
        return Source(
            path=source.path,
            text=source.text,
            values=source.values,
            command=command,
            notes=(*source.notes, note),
        )
    inner = read_source(path)
    return Source(
        path=inner.path,
        text=inner.text,
        values={**inner.values, **source.values},
        command=command,
        notes=(*source.notes, *inner.notes),
    )


def recognise(source: Source) -> Dialect:
    """The dialect that knows most of the keys, its own signs counting more. Raises BadValue without one."""
    if {"task", "model", "data"} <= source.values.keys() or "extends" in source.values:
        raise BadValue(
            Problem(
                where=source.name,
                what="this is a recipe already",
                right="a file of another tool",
                type=f"launcher check {source.name}",
            )
        )
    if source.is_python:  # calls of TrainingArguments were found in it, however few their words are
        return DIALECTS.get("trainer")
    best = max(DIALECTS, key=lambda each: _score(each, source.values))
    if _score(best, source.values) < 1:
        found = ", ".join(list(map(str, source.values))[:6]) or "nothing"
        raise BadValue(
            Problem(
                where=source.name,
                what=f"no tool that is known here writes such a file (its keys: {found})",
                right=f"a file of: {', '.join(each.title for each in DIALECTS)}",
                type=f"--from {' or '.join(DIALECTS.names())}, where you know what it is",
            )
        )
    return best


def _score(dialect: Dialect, values: dict[str, Any]) -> float:
    """Keys that it knows as a share of all, and two for each that only this tool has."""
    keys = [key for key, _ in flat(values, dialect.blocks)]
    names = {name.lower() for row in dialect.rows for name in row.names}
    known = sum(key.replace("-", "_").lower() in names for key in keys)
    tops = {str(key).replace("-", "_").lower() for key in values}
    return (
        2 * len(tops & dialect.signs) + known / max(1, len(keys)) * 2 if known or tops & dialect.signs else 0
    )


def _lay_over(draft: Draft, overrides: Sequence[str]) -> None:
    """What was typed beside the file has the last word."""
    leaves, problems = read_overrides(overrides)
    layer = translate(leaves)
    if problems := [*problems, *layer.problems]:
        raise BadValue(problems)
    for leaf in layer.leaves.values():
        draft.values[leaf.key] = leaf.value
        draft.typed.add(leaf.key)
