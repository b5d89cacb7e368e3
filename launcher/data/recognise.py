"""Which layout a file has, from its columns. What could be two things is refused, never guessed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.data.columns import is_made
from launcher.data.findings import excerpt
from launcher.data.layout import LAYOUTS, Layout, Role
from launcher.data.options import DataOptions
from launcher.data.table import Table
from launcher.errors import DataError, Problem
from launcher.registry import nearest


class NoLayout(DataError):
    """The columns are those of no layout of the task: they may be another task's."""


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """A layout and the column of each of its roles. `passed_over`: layouts that it is more than."""

    layout: Layout
    columns: dict[str, str]
    passed_over: tuple[str, ...] = ()

    def said(self, table: Table) -> str:
        """What was recognised, for the person."""
        pairs = ", ".join(f"{role} = '{column}'" for role, column in self.columns.items())
        said = f"{table.path.name}: {len(table.rows):,} rows, layout {self.layout.name} ({pairs})"
        others = " or ".join(f"data.layout={name}" for name in self.passed_over)
        return said + (f"; {others} leaves the other columns aside" if others else "")


def recognise(table: Table, options: DataOptions, task: str) -> Recognised:
    """The layout of a table and its columns. Raises DataError when none fits, or more than one does."""
    _check_columns(table, options.columns)
    candidates = _candidates(options, task)
    found = {layout.name: _resolve(layout, table, options.columns) for layout in candidates}
    fitting = [layout for layout in candidates if _fits(layout, found[layout.name])]
    if not fitting:
        raise NoLayout(_none_fits(table, candidates, found))
    fullest = [layout for layout in fitting if not any(layout.needed < other.needed for other in fitting)]
    if len(fullest) > 1:
        raise DataError(_many_fit(table, fullest))
    passed_over = tuple(layout.name for layout in fitting if layout is not fullest[0])
    return _only(fullest[0], found[fullest[0].name], table, passed_over)


def apply(recognised: Recognised, table: Table) -> Recognised:
    """The same layout for the evaluation file. Raises DataError where it lacks one of the columns."""
    needed = {role: column for role, column in recognised.columns.items() if role in recognised.layout.needed}
    missing = [name for name in needed.values() if name not in table.columns and not is_made(name, table)]
    if missing:
        raise DataError(
            Problem(
                where=str(table.path),
                what=f"there is no column '{missing[0]}', which the training file has",
                right=f"the training file's columns; this file's are: {', '.join(table.columns)}",
                type=f"'{missing[0]}' as the column's name in this file",
            )
        )
    return recognised


def _candidates(options: DataOptions, task: str) -> list[Layout]:
    if options.layout == "auto":
        layouts = [layout for layout in LAYOUTS if layout.task == task and not layout.by_name_only]
    else:
        layouts = [LAYOUTS.get(options.layout, where="data.layout")]
    of_task = [layout for layout in layouts if layout.task == task]
    if not of_task:
        names = ", ".join(layout.name for layout in LAYOUTS if layout.task == task)
        raise NoLayout(
            Problem(
                where="data.layout",
                what=f"layout '{options.layout}' is for task {layouts[0].task}, the recipe's task is {task}",
                right=f"a layout for {task}: {names}",
                type=f"data.layout={names.split(', ')[0]}, or task={layouts[0].task}",
            )
        )
    known = {role.name for layout in of_task for role in layout.roles}
    for role in options.columns:
        if role not in known:
            raise NoLayout(_unknown_role(role, known))
    return [layout for layout in of_task if all(layout.role(role) for role in options.columns)] or of_task


def _check_columns(table: Table, asked: Mapping[str, str]) -> None:
    for role, column in asked.items():
        if column not in table.columns and not is_made(column, table):
            lowered = {name.lower(): name for name in table.columns}
            close = nearest(column, lowered)
            raise DataError(
                Problem(
                    where=f"{table.path}  data.columns.{role}",
                    what=f"there is no column '{column}'",
                    right=f"one of: {', '.join(table.columns)}",
                    type=f"data.columns.{role}={lowered[close] if close else 'COLUMN'}",
                )
            )


def _unknown_role(role: str, known: set[str]) -> Problem:
    return Problem(
        where=f"data.columns.{role}",
        what=f"'{role}' is not a role of this layout",
        right=f"one of: {', '.join(sorted(known))}",
        type=f"data.columns.{nearest(role, sorted(known)) or 'ROLE'}=COLUMN",
    )


def _resolve(layout: Layout, table: Table, asked: Mapping[str, str]) -> dict[str, list[str]]:
    """Every role's possible columns: the one asked for, or those that its names match."""
    taken = set(asked.values())
    free = tuple(column for column in table.columns if column not in taken)
    return {
        role.name: [asked[role.name]] if role.name in asked else _known(role, free, table)
        for role in layout.roles
    }


def _known(role: Role, free: tuple[str, ...], table: Table) -> list[str]:
    """The columns that play a role by their name and, where that tells too little, their first value."""
    named = role.columns_in(free)
    if role.accepts is None:
        return named
    return [column for column in named if role.accepts(_first_value(table, column))]


def _first_value(table: Table, column: str) -> Any:
    return next((row[column] for row in table.rows if row.get(column) not in (None, [])), None)


def _fits(layout: Layout, found: Mapping[str, list[str]]) -> bool:
    return all(found[role.name] for role in layout.roles if role.required)


def _only(
    layout: Layout, found: Mapping[str, list[str]], table: Table, passed_over: tuple[str, ...]
) -> Recognised:
    for role, columns in found.items():
        if len(columns) > 1:
            raise DataError(
                Problem(
                    where=str(table.path),
                    what=f"more than one column could be the {role}: {', '.join(columns)}",
                    right="one of them, named",
                    type=" or ".join(_typed(layout, {**_first(found), role: column}) for column in columns),
                )
            )
    return Recognised(layout=layout, columns=_whole_keys(_first(found), table), passed_over=passed_over)


def _whole_keys(columns: dict[str, str], table: Table) -> dict[str, str]:
    """EmoryNLP's Scene_ID begins anew in each episode: season and episode belong to the dialogue's id."""
    column = columns.get("dialogue", "")
    around = [each for each in table.columns if each.lower() in ("season", "episode")]
    if column.lower() == "scene_id" and len(around) == 2:
        return {**columns, "dialogue": "+".join([*around, column])}
    return columns


def _first(found: Mapping[str, list[str]]) -> dict[str, str]:
    return {role: columns[0] for role, columns in found.items() if columns}


def _typed(layout: Layout, columns: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{role}: {column}" for role, column in columns.items())
    return f"data.layout={layout.name} 'data.columns={{{pairs}}}'"


def _none_fits(
    table: Table, candidates: list[Layout], found: Mapping[str, Mapping[str, list[str]]]
) -> Problem:
    def lacks(layout: Layout) -> tuple[int, int]:
        has = _first(found[layout.name])
        return len(layout.needed - set(has)), -len(has)

    nearest_layout = min(candidates, key=lacks)
    needed = [role.name for role in nearest_layout.roles if role.required]
    odd = _of_another_kind(table, nearest_layout)
    columns = {role: (found[nearest_layout.name][role] or ["COLUMN"])[0] for role in needed}
    missing = [role for role in needed if not found[nearest_layout.name][role]]
    return Problem(
        where=str(table.path),
        what=f"no column for {' and '.join(missing)}; the columns are: {', '.join(_shown(table))}{odd}",
        right=" or ".join(f"{layout.name} ({layout.summary})" for layout in candidates),
        type=_typed(nearest_layout, columns),
    )


def _of_another_kind(table: Table, layout: Layout) -> str:
    """What stands in a column that has a role's name, and is not what the role takes."""
    named = [column for role in layout.roles if role.accepts for column in role.columns_in(table.columns)]
    found = [f"'{column}' holds {excerpt(_first_value(table, column))}" for column in dict.fromkeys(named)]
    return "".join(f"; {each}, not {layout.summary}" for each in found)


def _shown(table: Table) -> list[str]:
    """The column names; of objects with the names inside, by which they can be asked for."""
    found = list[str]()
    for column in table.columns:
        value = _first_value(table, column)
        name = repr(column) if "," in column else column
        inside = [f"{column}.{key}" for key in value] if isinstance(value, dict) else []
        found.append(f"{name} (with {', '.join(inside[:10])})" if inside else name)
    return found


def _many_fit(table: Table, fitting: list[Layout]) -> Problem:
    return Problem(
        where=str(table.path),
        what=f"the columns {', '.join(table.columns)} fit more than one layout",
        right=" or ".join(f"{layout.name} ({layout.summary})" for layout in fitting),
        type=" or ".join(f"data.layout={layout.name}" for layout in fitting),
    )
