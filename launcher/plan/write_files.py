"""Writes a set of files into a folder: all that may be written, or none."""

from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.plan.write import write_file


def write_files(out: Path, files: dict[str, str], *, force: bool) -> list[tuple[Path, str]]:
    """Write the files; each with `written` or `unchanged`.

    Raises BadValue where a file is there with other content, unless `force`.
    """
    places = {out / name: text for name, text in files.items()}
    differ = [path for path, text in places.items() if path.exists() and _content(path) != text]
    if differ and not force:
        names = ", ".join(path.name for path in differ)
        raise BadValue(
            Problem(
                where=f"--out {out}",
                what=f"{names} there differ from what would be written",
                right="another folder, or --force to write over them",
                type="--force",
            )
        )
    kept = {path for path in places if path.exists() and path not in differ}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path in places.keys() - kept:
            write_file(path, places[path])
    except OSError as error:
        raise _unwritable(out, error) from error
    return [(path, "unchanged" if path in kept else "written") for path in places]


def _unwritable(out: Path, error: OSError) -> BadValue:
    return BadValue(
        Problem(
            where=f"--out {out}",
            what=f"nothing can be written there: {error.strerror}",
            right="a folder, or a name that is free, in a place that you may write to",
            type="--out compiled",
        )
    )


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
