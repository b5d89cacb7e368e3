"""C1 control characters that stand for cp1252 punctuation: put right, and counted."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from launcher.data.spool import mapped
from launcher.data.table import Table

_NBSP = "\u00a0"
_C1 = re.compile("[\x80-\x9f]")


def _meaning(code: int) -> str:
    """The character that cp1252 has at a C1 code; the control character where it has none."""
    try:
        return bytes([code]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(code)


_TABLE = {code: _meaning(code) for code in range(0x80, 0xA0)}


class Repairer:
    """Repairs values of any JSON type, and counts what it changed and what it could not."""

    def __init__(self, found: re.Pattern[str] = _C1, table: Mapping[int, str] = _TABLE) -> None:
        """`found` are the characters to look for, `table` what becomes of them."""
        self.found, self.table = found, table
        self.changed: Counter[str] = Counter()
        self.num_values = 0

    def __call__(self, value: Any) -> Any:
        """The value with its texts repaired; the same object where nothing was to be done."""
        if isinstance(value, str):
            return value if value.isascii() or not self.found.search(value) else self._text(value)
        if isinstance(value, list):
            return [self(each) for each in value]
        if isinstance(value, dict):
            return {key: self(each) for key, each in value.items()}
        return value

    def finds(self, value: Any) -> bool:
        """Whether there is anything to be done."""
        if isinstance(value, str):
            return not value.isascii() and self.found.search(value) is not None
        if isinstance(value, dict):
            return any(map(self.finds, value.values()))
        return isinstance(value, list) and any(map(self.finds, value))

    def _text(self, text: str) -> str:
        self.num_values += 1
        self.changed.update(self.found.findall(text))
        return text.translate(self.table)

    def said(self, name: str) -> tuple[str, ...]:
        """One line for what became punctuation, one for what did not."""
        mended = {sign: count for sign, count in self.changed.items() if _TABLE[ord(sign)] != sign}
        left = {sign: count for sign, count in self.changed.items() if sign not in mended}
        lines = []
        if mended:
            most = sorted(mended, key=lambda sign: -mended[sign])[:4]
            shown = ", ".join(f"U+{ord(sign):04X} -> {_TABLE[ord(sign)]} {mended[sign]:,}" for sign in most)
            lines.append(
                f"{name}: {sum(mended.values()):,} C1 control characters in {self.num_values:,} fields "
                f"became the cp1252 punctuation that they stand for ({shown}); "
                "data.repair_c1=false leaves them"
            )
        if left:
            lines.append(f"{name}: {sum(left.values()):,} C1 control characters stand for nothing and stay")
        return tuple(lines)


def repair(table: Table) -> Table:
    """The table with its texts repaired, and a notice of how many characters changed.

    Where C1 controls show that a text came from cp1252, its non-breaking spaces came from there too and
    become spaces; elsewhere they stay.
    """
    repairer = Repairer()
    table = _applied(repairer, table)
    if not repairer.changed:
        return table
    said = repairer.said(table.path.name)
    if any(_TABLE[ord(sign)] != sign for sign in repairer.changed):
        spaces = Repairer(re.compile(_NBSP), {ord(_NBSP): " "})
        table = _applied(spaces, table)
        count = spaces.changed[_NBSP]
        said += (f"{table.path.name}: {count:,} non-breaking spaces became spaces",) if count else ()
    return table.said(*said)


def _applied(repairer: Repairer, table: Table) -> Table:
    if not any(map(repairer.finds, table.rows)):
        return table
    rows = mapped(table.rows, lambda _, row: {column: repairer(value) for column, value in row.items()})
    return replace(table, rows=rows)


def count_controls(table: Table) -> int:
    """C1 control characters in a table that nobody repairs."""
    repairer = Repairer()
    for row in table.rows:
        repairer(list(row.values()))
    return sum(repairer.changed.values())
