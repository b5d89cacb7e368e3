"""From what `train_file` names to a table: its kind and its ending choose the reader."""

from pathlib import Path

from launcher.data.format import FORMATS, Format, endings, format_of
from launcher.data.hub import load_hub, load_saved
from launcher.data.many_files import read_many
from launcher.data.place import kind_of
from launcher.data.reading import DEFAULT, Reading
from launcher.data.repair import count_controls, repair
from launcher.data.table import Table
from launcher.data.text_file import binary_kind, missing, read_text
from launcher.errors import BadValue, DataError, Problem
from launcher.registry import nearest


def read_rows(path: Path, reading: Reading = DEFAULT) -> Table:
    """All rows, C1 controls repaired unless switched off.

    Raises DataError for what is missing, empty, or not what its name says, BadValue for unknown settings.
    """
    table = _read(path, reading)
    if not table.rows:
        raise DataError(
            Problem(
                where=str(path),
                what="the file has column names but no rows" if table.columns else "the file has no rows",
                right="at least one row of data",
                type=f"{reading.key}=FILE",
            )
        )
    if reading.repair_c1:
        return repair(table)
    left = count_controls(table)
    return table.said(f"{path.name}: {left:,} C1 control characters are left as they are") if left else table


def _read(path: Path, reading: Reading) -> Table:
    kind = kind_of(path)
    if kind == "hub":
        return load_hub(path, reading)
    if kind == "saved":
        return load_saved(path, reading)
    return read_many(path, reading, read_file) if kind == "many" else read_file(path, reading)


def read_file(path: Path, reading: Reading) -> Table:
    """The rows of one file, as they stand there."""
    known = _format(path, reading.format)
    if known.load is not None:
        if not path.is_file():
            raise DataError(missing(path, reading.key, reading.source))
        return known.load(path, reading)
    assert known.read is not None, "a format reads text or loads a file"
    text = read_text(path, reading)
    return known.read(text, path, reading).said(*text.notices)


def _format(path: Path, name: str) -> Format:
    if name != "auto":
        return FORMATS.get(name, where="data.format")
    found = format_of(path)
    if found is not None:
        return found
    suffix, kind = path.suffix, _binary(path)
    typed = f"data.format={nearest(suffix, FORMATS.names()) or 'csv'}, or the file's real suffix"
    raise (DataError if path.exists() or suffix else BadValue)(
        Problem(
            where=str(path),
            what=f"the suffix '{suffix}' is not a known data format" + (f": this is {kind}" if kind else ""),
            right=f"a file that ends in one of: {', '.join(endings())}, or these with .gz or .zst",
            type="save or export it as csv first (from a sheet: UTF-8, comma-separated)" if kind else typed,
        )
    )


def _binary(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return binary_kind(file.read(64))
