"""txt: every line is a row with one column, `text`. Blank lines stay, for the layout to judge."""

from pathlib import Path

from launcher.data.format import FORMATS, Format
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import Table


def read_txt(text: str, path: Path, reading: Reading = DEFAULT) -> Table:
    r"""One row a line; only \n, \r\n and \r end a line."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    tabs = {line.count("\t") for line in lines if line.strip()}
    said = f"{path.name}: every line holds {max(tabs, default=0)} tabs; data.format=tsv reads them as columns"
    return Table(
        notices=(said,) if len(tabs) == 1 and tabs != {0} else (),
        columns=("text",),
        rows=[{"text": line} for line in lines],
        lines=list(range(1, len(lines) + 1)),
        path=path,
        is_prose=True,
    )


FORMATS.register("txt", Format(name="txt", summary="one text a line", suffixes=(".txt",), read=read_txt))
