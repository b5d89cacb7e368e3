"""Where a report goes: beside its run, or where it was told to, never over something else."""

from collections.abc import Sequence
from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.report.page import BEGINNING, page
from launcher.report.places import find_run, labels
from launcher.report.reading import read_run

NAME = "report.html"


def report(typed: Sequence[str], out: Path | None) -> tuple[Path, str]:
    """Write the report of the runs that were named. Returns its file and its text; raises BadValue."""
    folders = list(dict.fromkeys(find_run(each).resolve() for each in typed))
    runs = [read_run(folder, label) for folder, label in zip(folders, labels(folders), strict=True)]
    file = out or (folders[0] / NAME if len(folders) == 1 else Path(NAME))
    _require_free(file)
    text = page(runs)
    _write(file, text)
    return file, text


def _require_free(file: Path) -> None:
    """An earlier report may be replaced; anything else stays."""
    if file.is_dir():
        raise _refused(file, "this is a folder", f"--out {file / NAME}")
    if not file.exists():
        return
    if _beginning(file) != BEGINNING:
        raise _refused(file, "this file is there already, and is no report", f"--out {file.with_name(NAME)}")


def _beginning(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(len(BEGINNING))
    except OSError:  # whatever it is, it is not ours to replace
        return ""


def _write(file: Path, text: str) -> None:
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _refused(file, f"cannot be written ({error.strerror})", "--out report.html") from error


def _refused(file: Path, what: str, type_: str) -> BadValue:
    right = "a new file, or an earlier report, in a folder that is there and may be written to"
    return BadValue(Problem(where=str(file), what=what, right=right, type=type_))
