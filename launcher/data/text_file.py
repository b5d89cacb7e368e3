"""A file's bytes as text: UTF-8, strictly. What does not decode is named, never dropped."""

import re
from pathlib import Path

from launcher.data.findings import excerpt
from launcher.errors import DataError, Problem
from launcher.registry import nearest

_BINARY = {
    b"\x1f\x8b": "gzip-compressed",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"PK\x03\x04": "a zip archive (or an Excel sheet)",
    b"PAR1": "a parquet file",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
}
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_SAMPLE = 100_000
_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
# cp1252 leaves these bytes undefined.
_NOT_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")


def read_text(path: Path, *, key: str = "data.train_file", source: str | None = None) -> str:
    """The file's text without a byte order mark. Raises DataError for a missing, empty or unreadable file."""
    data = _read_bytes(path, key, source)
    _refuse_binary(data, path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(_undecodable(data, error, path)) from None
    if not text.strip():
        raise DataError(_problem(path, "the file is empty", "at least one row of data", f"{key}=FILE"))
    return text


def _read_bytes(path: Path, key: str, source: str | None) -> bytes:
    try:
        return path.read_bytes()
    except IsADirectoryError:
        inside = ", ".join(sorted(child.name for child in path.iterdir() if child.is_file())[:5])
        right = f"one file in it: {inside}" if inside else "a csv, tsv, json, jsonl or txt file"
        raise DataError(_problem(path, "this is a folder", right, f"{key}={path}/FILE")) from None
    except FileNotFoundError:
        raise DataError(_missing(path, key, source)) from None
    except OSError as error:
        raise DataError(
            _problem(path, f"cannot be read: {error.strerror}", "a readable file", f"ls -l {path}")
        ) from None


def _missing(path: Path, key: str, source: str | None) -> Problem:
    siblings = {child.name.lower(): child.name for child in _files_beside(path)}
    close = nearest(path.name, siblings)
    right = f"a file that exists; beside it: {', '.join(sorted(siblings.values())[:5]) or 'nothing'}"
    if source and not close:
        return _problem(
            path, "there is no such file", f"the file from {source}", f"{key}=FILE once it is here"
        )
    typed = f"{key}={path.parent / siblings[close]}" if close else f"{key}=FILE"
    return _problem(path, "there is no such file", right, typed)


def _files_beside(path: Path) -> list[Path]:
    return [child for child in path.parent.iterdir() if child.is_file()] if path.parent.is_dir() else []


def _refuse_binary(data: bytes, path: Path) -> None:
    for start, kind in _BINARY.items():
        if data.startswith(start):
            what = f"this is {kind}, not text"
            raise DataError(_problem(path, what, "a text file in UTF-8", "unpack or export it first"))
    encoding = next((name for start, name in _UTF16.items() if data.startswith(start)), None)
    if encoding or b"\0" in data[:4096]:
        kind = f"encoded as {encoding}" if encoding else "binary, or utf-16 (it holds zero bytes)"
        typed = f"iconv -f utf-16 -t utf-8 {path} > {_recoded(path)}"
        raise DataError(_problem(path, f"the file is {kind}", "text in UTF-8", typed))


def _undecodable(data: bytes, error: UnicodeDecodeError, path: Path) -> Problem:
    # "utf-8-sig" counts from behind the byte order mark.
    offset = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
    line = data.count(b"\n", 0, offset) + 1
    likely = likely_encoding(data[max(0, offset - _SAMPLE) : offset + _SAMPLE])
    start = data.rfind(b"\n", 0, offset) + 1
    around = data[max(start, offset - 40) : offset + 40].split(b"\n")[0].decode(likely, "replace")
    return _problem(
        f"{path}:{line}",
        f"byte {offset:,} (0x{data[offset]:02x}) is not UTF-8; as {likely}, which it looks like, "
        f"the line reads: {excerpt(around.strip())}",
        "text in UTF-8: no byte is ever dropped or guessed",
        f"iconv -f {likely} -t utf-8 {path} > {_recoded(path)}",
    )


def likely_encoding(data: bytes) -> str:
    """The encoding that bytes which are not UTF-8 most probably have: gb18030, cp1252 or latin-1."""
    high = sum(byte >= 0x80 for byte in data)
    # In Western text high bytes stand alone; in Chinese text nearly every one belongs to a pair.
    if 2 * len(_PAIR.findall(data)) > 0.8 * high:
        return "gb18030"
    return "latin-1" if _NOT_CP1252 & set(data) else "cp1252"


def _recoded(path: Path) -> str:
    return str(path.with_name(f"{path.stem}.utf8{path.suffix}"))


def _problem(where: object, what: str, right: str, type: str) -> Problem:
    return Problem(where=str(where), what=what, right=right, type=type)
