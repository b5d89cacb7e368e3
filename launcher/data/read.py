"""A data file to a table: the suffix chooses the format."""

from pathlib import Path

from launcher.data.format import FORMATS, Format
from launcher.data.table import Table
from launcher.data.text_file import read_text
from launcher.errors import DataError, Problem


def read_rows(path: Path, *, key: str = "data.train_file", source: str | None = None) -> Table:
    """All rows of a file. Raises DataError for a file that is missing, empty, or not what its name says.

    `key` is the recipe's key that names the file, `source` where to get it: both for the message.
    """
    text = read_text(path, key=key, source=source)
    table = _format_of(path).read(text, path)
    if not table.rows:
        raise DataError(
            Problem(
                where=str(path),
                what="the file has column names but no rows" if table.columns else "the file has no rows",
                right="at least one row of data",
                type=f"{key}=FILE",
            )
        )
    return table


def _format_of(path: Path) -> Format:
    known = {suffix: piece for piece in FORMATS for suffix in piece.suffixes}
    if path.suffix.lower() in known:
        return known[path.suffix.lower()]
    raise DataError(
        Problem(
            where=str(path),
            what=f"the suffix '{path.suffix}' is not a known data format",
            right=f"a file that ends in one of: {', '.join(known)}",
            type=f"the file's real suffix, such as {path.stem}.csv",
        )
    )
