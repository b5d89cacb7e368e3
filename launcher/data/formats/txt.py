"""txt: every line is a row with one column, `text`. Blank lines stay, for the layout to judge."""

from pathlib import Path

from launcher.data.format import FORMATS, Format
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import RowWriter, Table
from launcher.data.text import Text


def read_txt(text: Text, path: Path, reading: Reading = DEFAULT) -> Table:
    r"""One row a line; only \n, \r\n and \r end a line."""
    writer, tabs = RowWriter(), set[int]()
    for number, ended in enumerate(text.lines(None), start=1):
        line = ended.removesuffix("\n").removeprefix("\ufeff")  # of a file that was joined to another
        writer.add({"text": line}, number, len(line))
        if len(tabs) < 2 and not line.isspace() and line:
            tabs.add(line.count("\t"))
    rows, lines = writer.done()
    said = f"{path.name}: every line holds {max(tabs, default=0)} tabs; data.format=tsv reads them as columns"
    return Table(
        notices=(said,) if len(tabs) == 1 and tabs != {0} else (),
        columns=("text",),
        rows=rows,
        lines=lines,
        path=path,
        is_prose=True,
    )


FORMATS.register("txt", Format(name="txt", summary="one text a line", suffixes=(".txt",), read=read_txt))
