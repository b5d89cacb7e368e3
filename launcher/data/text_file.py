"""A file's bytes as text, strictly: no byte is dropped, none is guessed without evidence."""

from dataclasses import dataclass
from pathlib import Path

from launcher.data.compression import unpack
from launcher.data.encodings import byte_orders, guess, known_encoding, likely_encoding, without_utf8
from launcher.data.findings import excerpt
from launcher.data.reading import DEFAULT, Reading
from launcher.errors import BadValue, DataError, Problem
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
    b"ARROW1": "an Arrow file",
}
_UNPACK = "unpack or export it first"
_HELP = {
    "gzip-compressed": "the same file under a name that ends in .gz",
    "zstd-compressed": "the same file under a name that ends in .zst",
    "a parquet file": "the same file under a name that ends in .parquet",
}
_SAMPLE = 100_000


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """A file's text without a byte order mark, and what to say of its encoding."""

    text: str
    notices: tuple[str, ...] = ()


def read_text(path: Path, reading: Reading = DEFAULT) -> Decoded:
    """The file's text, unpacked and decoded.

    Raises DataError for a missing, empty or unreadable file, BadValue for an unknown encoding.
    """
    data = unpack(_read_bytes(path, reading.key, reading.source), path)
    decoded = _decode(data, path, reading.encoding)
    if not decoded.text.strip():
        right = "at least one row of data"
        raise DataError(_problem(path, "the file is empty", right, f"{reading.key}=FILE"))
    return decoded


def _decode(data: bytes, path: Path, encoding: str) -> Decoded:
    if encoding != "auto" and not known_encoding(encoding):
        what = f"unknown encoding '{encoding}'"
        raise BadValue(_problem("data.encoding", what, "utf-8, gb18030 ...", "data.encoding=auto"))
    if encoding == "auto":
        _refuse_binary(data, path)
    try:
        return Decoded(text=data.decode("utf-8-sig" if encoding in ("auto", "utf-8") else encoding))
    except UnicodeDecodeError as error:
        if encoding != "auto":
            raise DataError(_not_as_said(data, error, path, encoding)) from None
        return _decode_by_evidence(data, error, path)


def _decode_by_evidence(data: bytes, error: UnicodeDecodeError, path: Path) -> Decoded:
    found = guess(data.removeprefix(b"\xef\xbb\xbf"))
    if found.doubt or data.startswith(b"\xef\xbb\xbf"):
        doubt = found.doubt or "its byte order mark says UTF-8"
        raise DataError(_undecodable(data, error, path, doubt)) from None
    text = data.decode(found.encoding)
    line = data.count(b"\n", 0, error.start) + 1
    shown = excerpt(text.split("\n")[line - 1].strip())
    return Decoded(
        text=text,
        notices=(
            f"{path.name}: not UTF-8; read as {found.encoding} (line {line:,}: {shown}); "
            "data.encoding=NAME reads it as another",
        ),
    )


def _read_bytes(path: Path, key: str, source: str | None) -> bytes:
    try:
        return path.read_bytes()
    except IsADirectoryError:
        inside = ", ".join(child.name for child in _files_beside(path / "x")[:5]) or "nothing"
        right = f"one file in it: {inside}"
        raise DataError(_problem(path, "this is a folder", right, f"{key}={path}/FILE")) from None
    except FileNotFoundError:
        raise DataError(missing(path, key, source)) from None
    except OSError as error:
        raise DataError(
            _problem(path, f"cannot be read: {error.strerror}", "a readable file", f"ls -l {path}")
        ) from None


def missing(path: Path, key: str, source: str | None) -> Problem:
    """What to say of a file that is not there."""
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
    return sorted(child for child in path.parent.iterdir() if child.is_file()) if path.parent.is_dir() else []


def _refuse_binary(data: bytes, path: Path) -> None:
    for start, kind in _BINARY.items():
        if data.startswith(start):
            what = f"this is {kind}, not text"
            raise DataError(_problem(path, what, "a text file in UTF-8", _HELP.get(kind, _UNPACK)))
    encoding = next((name for start, name in byte_orders() if data.startswith(start)), None)
    if encoding or b"\0" in data[:4096]:
        kind = f"encoded as {encoding}" if encoding else "binary, or utf-16 (it holds zero bytes)"
        typed = f"data.encoding=utf-16, or iconv -f utf-16 -t utf-8 {path} > {_recoded(path)}"
        raise DataError(_problem(path, f"the file is {kind}", "text in UTF-8", typed))


def _undecodable(data: bytes, error: UnicodeDecodeError, path: Path, doubt: str) -> Problem:
    # "utf-8-sig" counts from behind the byte order mark.
    offset = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
    line = data.count(b"\n", 0, offset) + 1
    likely = likely_encoding(without_utf8(data[max(0, offset - _SAMPLE) : offset + _SAMPLE]))
    start = data.rfind(b"\n", 0, offset) + 1
    around = data[max(start, offset - 40) : offset + 40].split(b"\n")[0].decode(likely, "replace")
    return _problem(
        f"{path}:{line}",
        f"byte {offset:,} (0x{data[offset]:02x}) is not UTF-8; as {likely}, "
        f"the line reads: {excerpt(around.strip())}; but {doubt}",
        "text in UTF-8: no byte is ever dropped or guessed",
        f"data.encoding={likely} if the line reads right, "
        f"or iconv -f {likely} -t utf-8 {path} > {_recoded(path)}",
    )


def _not_as_said(data: bytes, error: UnicodeDecodeError, path: Path, encoding: str) -> Problem:
    return _problem(
        f"{path}:{data.count(10, 0, error.start) + 1}",
        f"byte {error.start:,} (0x{data[error.start]:02x}) does not fit data.encoding: {encoding}",
        "the encoding that the file has",
        "data.encoding=auto",
    )


def _recoded(path: Path) -> str:
    return str(path.with_name(f"{path.stem}.utf8{path.suffix}"))


def _problem(where: object, what: str, right: str, type: str) -> Problem:
    return Problem(where=str(where), what=what, right=right, type=type)
