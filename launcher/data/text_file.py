"""A file's bytes as text, strictly: no byte is dropped, none is guessed without evidence."""

import codecs
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from launcher.data.compression import unpacked
from launcher.data.encodings import byte_orders, guess, known_encoding, likely_encoding, without_utf8
from launcher.data.findings import excerpt
from launcher.data.reading import DEFAULT, Reading
from launcher.data.text import HELD_BYTES, Filed, Held, Text, as_file
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
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"\x7fELF": "a program",
}
_UNPACK = "unpack or export it first"
_HELP = {
    "gzip-compressed": "the same file under a name that ends in .gz",
    "zstd-compressed": "the same file under a name that ends in .zst",
    "a parquet file": "the same file under a name that ends in .parquet",
}
_SAMPLE = 100_000
_HEAD, _FEW_ZEROS, _FEW_CONTROLS = 4096, 0.01, 0.05


def read_text(path: Path, reading: Reading = DEFAULT) -> Text:
    """The file's text, unpacked and decoded; in memory only where it is short.

    Raises DataError for a missing, empty or unreadable file, BadValue for an unknown encoding.
    """
    if reading.encoding != "auto" and not known_encoding(reading.encoding):
        what = f"unknown encoding '{reading.encoding}'"
        raise BadValue(_problem("data.encoding", what, "utf-8, gb18030 ...", "data.encoding=auto"))
    pieces = _bytes_of(path, reading)
    start = b""
    for piece in pieces:
        start += piece
        if len(start) > HELD_BYTES:
            return _filed(start, pieces, path, reading)
    encoding, notices = _encoding(start, path, reading.encoding)
    text = start.decode(encoding)
    if not text.strip():
        raise DataError(_empty(path, reading))
    return Held(text, notices)


def _filed(start: bytes, rest: Iterator[bytes], path: Path, reading: Reading) -> Text:
    """Looks at every byte once. Bytes that do not fit are judged with all others in memory."""
    if reading.encoding == "auto":
        _refuse_binary(start, path)
    encoding, notices = _named(reading.encoding), tuple[str, ...]()
    try:
        is_empty = _only_space(chain([start], rest), encoding)
    except UnicodeDecodeError:
        encoding, notices = _encoding(b"".join(_bytes_of(path, reading)), path, reading.encoding)
        is_empty = False
    if is_empty:
        raise DataError(_empty(path, reading))
    return Filed(lambda: as_file(_bytes_of(path, reading)), encoding, notices)


def _only_space(pieces: Iterator[bytes], encoding: str) -> bool:
    """Whether a text holds nothing. Raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    is_empty = True
    for piece in pieces:
        text = decoder.decode(piece)
        is_empty = is_empty and not text.strip()
    return is_empty and not decoder.decode(b"", True).strip()


def _named(encoding: str) -> str:
    """A byte order mark is none of the text."""
    return "utf-8-sig" if encoding in ("auto", "utf-8") else encoding


def _empty(path: Path, reading: Reading) -> Problem:
    return _problem(path, "the file is empty", "at least one row of data", f"{reading.key}=FILE")


def _encoding(data: bytes, path: Path, encoding: str) -> tuple[str, tuple[str, ...]]:
    """The encoding that all bytes fit, and what to say of it. Raises DataError where there is none."""
    if encoding == "auto":
        _refuse_binary(data, path)
    try:
        data.decode(_named(encoding))
    except UnicodeDecodeError as error:
        if encoding != "auto":
            raise DataError(_not_as_said(data, error, path, encoding)) from None
        return _by_evidence(data, error, path)
    return _named(encoding), ()


def _by_evidence(data: bytes, error: UnicodeDecodeError, path: Path) -> tuple[str, tuple[str, ...]]:
    found = guess(data.removeprefix(b"\xef\xbb\xbf"))
    if found.doubt or data.startswith(b"\xef\xbb\xbf"):
        doubt = found.doubt or "its byte order mark says UTF-8"
        raise DataError(_undecodable(data, error, path, doubt)) from None
    line = data.count(b"\n", 0, error.start) + 1
    shown = excerpt(data.decode(found.encoding).split("\n")[line - 1].strip())
    said = f"{path.name}: not UTF-8; read as {found.encoding} (line {line:,}: {shown}); "
    return found.encoding, (f"{said}data.encoding=NAME reads it as another",)


def _bytes_of(path: Path, reading: Reading) -> Iterator[bytes]:
    """The file's unpacked bytes, piece by piece. Raises DataError for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            yield from unpacked(file, path)
    except IsADirectoryError:
        inside = ", ".join(child.name for child in _files_beside(path / "x")[:5]) or "nothing"
        right = f"one file in it: {inside}"
        raise DataError(_problem(path, "this is a folder", right, f"{reading.key}={path}/FILE")) from None
    except FileNotFoundError:
        raise DataError(missing(path, reading.key, reading.source)) from None
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
    zeros = data[:_HEAD].count(b"\0")
    if encoding is None and 0 < zeros <= _FEW_ZEROS * len(data[:_HEAD]):
        raise DataError(_zero_byte(data, path))
    if encoding is None and not zeros and _is_binary(data[:_HEAD]):
        what = "the file is binary: many of its bytes stand for nothing in a text"
        raise DataError(_problem(path, what, "a text file in UTF-8", f"file {path}   (tells what it is)"))
    if encoding or zeros:
        kind = f"encoded as {encoding}" if encoding else "binary, or utf-16 (it holds zero bytes)"
        typed = f"data.encoding=utf-16, or iconv -f utf-16 -t utf-8 {path} > {_recoded(path)}"
        raise DataError(_problem(path, f"the file is {kind}", "text in UTF-8", typed))


def _is_binary(head: bytes) -> bool:
    controls = sum(byte < 32 and byte not in b"\t\n\v\f\r\x1b" for byte in head)
    return controls > _FEW_CONTROLS * len(head)


def _zero_byte(data: bytes, path: Path) -> Problem:
    offset = data.index(b"\0")
    return _problem(
        f"{path}:{data.count(10, 0, offset) + 1}",
        f"byte {offset:,} is zero, which no text holds",
        "text in UTF-8",
        f"tr -d '\\000' < {path} > {path.with_name(f'{path.stem}.clean{path.suffix}')}",
    )


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
