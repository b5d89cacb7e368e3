"""Which layout a file has, from its columns. What could be two things is refused, never guessed."""

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.data.layout import LAYOUTS, Layout
from launcher.data.options import DataOptions
from launcher.data.table import Table
from launcher.errors import DataError, Problem
from launcher.registry import nearest


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """A layout and the column of each of its roles."""

    layout: Layout
    columns: dict[str, str]

    def said(self, table: Table) -> str:
        """What was recognised, for the person."""
        pairs = ", ".join(f"{role} = '{column}'" for role, column in self.columns.items())
        return f"{table.path.name}: {len(table.rows):,} rows, layout {self.layout.name} ({pairs})"


def recognise(table: Table, options: DataOptions, task: str) -> Recognised:
    """The layout of a table and its columns. Raises DataError when none fits, or more than one does."""
    _check_columns(table, options.columns)
    candidates = _candidates(options, task)
    found = {layout.name: _resolve(layout, table, options.columns) for layout in candidates}
    fitting = [layout for layout in candidates if _fits(layout, found[layout.name])]
    if not fitting:
        raise DataError(_none_fits(table, candidates, found))
    if len(fitting) > 1:
        raise DataError(_many_fit(table, fitting))
    return _only(fitting[0], found[fitting[0].name], table)


def apply(recognised: Recognised, table: Table) -> Recognised:
    """The same layout for the evaluation file. Raises DataError where it lacks one of the columns."""
    missing = [column for column in recognised.columns.values() if column not in table.columns]
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
        layouts = [layout for layout in LAYOUTS if layout.task == task]
    else:
        layouts = [LAYOUTS.get(options.layout, where="data.layout")]
    of_task = [layout for layout in layouts if layout.task == task]
    if not of_task:
        names = ", ".join(layout.name for layout in LAYOUTS if layout.task == task)
        raise DataError(
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
            raise DataError(_unknown_role(role, known))
    return [layout for layout in of_task if all(layout.role(role) for role in options.columns)] or of_task


def _check_columns(table: Table, asked: Mapping[str, str]) -> None:
    for role, column in asked.items():
        if column not in table.columns:
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
        role.name: [asked[role.name]] if role.name in asked else role.columns_in(free)
        for role in layout.roles
    }


def _fits(layout: Layout, found: Mapping[str, list[str]]) -> bool:
    return all(found[role.name] for role in layout.roles if role.required)


def _only(layout: Layout, found: Mapping[str, list[str]], table: Table) -> Recognised:
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
    return Recognised(layout=layout, columns=_first(found))


def _first(found: Mapping[str, list[str]]) -> dict[str, str]:
    return {role: columns[0] for role, columns in found.items() if columns}


def _typed(layout: Layout, columns: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{role}: {column}" for role, column in columns.items())
    return f"data.layout={layout.name} 'data.columns={{{pairs}}}'"


def _none_fits(
    table: Table, candidates: list[Layout], found: Mapping[str, Mapping[str, list[str]]]
) -> Problem:
    nearest_layout = max(candidates, key=lambda layout: len(_first(found[layout.name])))
    needed = [role.name for role in nearest_layout.roles if role.required]
    columns = {role: (found[nearest_layout.name][role] or ["COLUMN"])[0] for role in needed}
    missing = [role for role in needed if not found[nearest_layout.name][role]]
    return Problem(
        where=str(table.path),
        what=f"no column for {' and '.join(missing)}; the columns are: {', '.join(table.columns)}",
        right=" or ".join(f"{layout.name} ({layout.summary})" for layout in candidates),
        type=_typed(nearest_layout, columns),
    )


def _many_fit(table: Table, fitting: list[Layout]) -> Problem:
    return Problem(
        where=str(table.path),
        what=f"the columns {', '.join(table.columns)} fit more than one layout",
        right=" or ".join(f"{layout.name} ({layout.summary})" for layout in fitting),
        type=" or ".join(f"data.layout={layout.name}" for layout in fitting),
    )
