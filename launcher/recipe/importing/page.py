"""A dialect's table for the manual: its keys, ours beside them, what differs, what is left and why."""

from collections.abc import Iterator

from launcher.recipe.importing.dialect import Dialect
from launcher.recipe.importing.table import Row

BEGIN = "<!-- keys: written by scripts/make_reference.py from the table that `launcher import` applies -->"
END = "<!-- end of keys -->"


def key_table(dialect: Dialect) -> str:
    """What is carried over, what is left, what needs no saying: three tables in one text."""
    carried = [row for row in dialect.rows if row.kind in ("carried", "together")]
    left = [row for row in dialect.rows if row.kind == "left"]
    needless = sorted({name for row in dialect.rows if row.kind == "needless" for name in row.names})
    lines = ["| there | here | note |", "| --- | --- | --- |", *map(_carried, carried)]
    lines += ["", "Not carried over:", "", "| there | why | nearest |", "| --- | --- | --- |", *_left(left)]
    lines += ["", f"Needs no saying here: {', '.join(f'`{name}`' for name in needless)}."]
    return "\n".join(lines)


def _carried(row: Row) -> str:
    return f"| {_names(row)} | `{row.ours}` | {_cell(row.note)} |"


def _left(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        yield f"| {_names(row)} | {_cell(row.note)} | {_cell(row.nearest)} |"


def _names(row: Row) -> str:
    return ", ".join(f"`{name}`" for name in row.names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def filled(page: str, dialect: Dialect) -> str:
    """The page with its table written again between the two marks. An AssertionError without marks."""
    assert page.count(BEGIN) == page.count(END) == 1, f"{dialect.page}.md: one begin mark and one end mark"
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{key_table(dialect)}\n{END}{rest.partition(END)[2]}"
