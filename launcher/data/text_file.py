"""A file's bytes as text, strictly: no byte is dropped, none is guessed without evidence."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from launcher.data.compression import unpacked
from launcher.data.encodings import byte_orders, guess, known_encoding, likely_encoding, without_utf8
from launcher.data.findings import excerpt
from launcher.data.misfits import Spot, first_misfit, spot_at
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
_MARK = b"\xef\xbb\xbf"
_Pieces = Callable[[], Iterator[bytes]]
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
    if reading.encoding == "auto":
        _refuse_binary(start, path)
        _refuse_zeros([start], path)
    encoding, notices = _named(reading.encoding), tuple[str, ...]()
    try:
        text = start.decode(encoding)
    except UnicodeError:
        encoding, notices = _by_evidence(lambda: iter([start]), path, reading.encoding)
        text = start.decode(encoding)
    if not text.strip():
        raise DataError(_empty(path, reading))
    return Held(text, notices)


def _filed(start: bytes, rest: Iterator[bytes], path: Path, reading: Reading) -> Text:
    """Looks at every byte, piece by piece: once where all fit, a few times more where some do not."""
    if reading.encoding == "auto":
        _refuse_binary(start, path)
    encoding, notices = _named(reading.encoding), tuple[str, ...]()
    try:
        is_empty, has_zeros = _look(chain([start], rest), encoding)
    except UnicodeError:
        if reading.encoding == "auto":
            _refuse_zeros(_bytes_of(path, reading), path)
        encoding, notices = _by_evidence(lambda: _bytes_of(path, reading), path, reading.encoding)
        is_empty = has_zeros = False
    if has_zeros and reading.encoding == "auto":
        _refuse_zeros(_bytes_of(path, reading), path)
    if is_empty:
        raise DataError(_empty(path, reading))
    return Filed(lambda: as_file(_bytes_of(path, reading)), encoding, notices)


def _look(pieces: Iterator[bytes], encoding: str) -> tuple[bool, bool]:
    """Whether a text holds nothing, and whether a byte is zero. Raises UnicodeError."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    is_empty, has_zeros = True, False
    for piece in pieces:
        text = decoder.decode(piece)
        is_empty = is_empty and not text.strip()
        has_zeros = has_zeros or b"\0" in piece
    rest = decoder.decode(b"", True)  # of a last character that is cut off
    return is_empty and not rest.strip(), has_zeros


def _named(encoding: str) -> str:
    """A byte order mark is none of the text."""
    return "utf-8-sig" if encoding in ("auto", "utf-8") else encoding


def _empty(path: Path, reading: Reading) -> Problem:
    return _problem(path, "the file is empty", "at least one row of data", f"{reading.key}=FILE")


def _by_evidence(pieces: _Pieces, path: Path, encoding: str) -> tuple[str, tuple[str, ...]]:
    """The encoding of bytes that do not fit the one named, and a notice. Raises DataError without proof."""
    offset = first_misfit(pieces(), _named(encoding))
    assert offset is not None, "all bytes fit"
    spot = spot_at(pieces(), offset)
    if encoding != "auto":
        raise DataError(_not_as_said(spot, path, encoding))
    doubt = "its byte order mark says UTF-8" if spot_at(pieces(), 0).after.startswith(_MARK) else ""
    found = guess(pieces)
    if found.doubt or doubt:
        raise DataError(_undecodable(spot, path, found.doubt or doubt))
    shown = excerpt(spot.bytes_of_line.decode(found.encoding, "replace").strip())
    said = f"{path.name}: not UTF-8; read as {found.encoding} (line {spot.line:,}: {shown}); "
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
    if (kind := binary_kind(data)) is not None:
        what = f"this is {kind}, not text"
        raise DataError(_problem(path, what, "a text file in UTF-8", _HELP.get(kind, _UNPACK)))
    encoding = next((name for start, name in byte_orders() if data.startswith(start)), None)
    zeros = data[:_HEAD].count(b"\0")
    if encoding is None and 0 < zeros <= _FEW_ZEROS * len(data[:_HEAD]):
        _refuse_zeros([data], path)
    if encoding is None and not zeros and _is_binary(data[:_HEAD]):
        what = "the file is binary: many of its bytes stand for nothing in a text"
        raise DataError(_problem(path, what, "a text file in UTF-8", f"file {path}   (tells what it is)"))
    if encoding or zeros:
        kind = f"encoded as {encoding}" if encoding else "binary, or utf-16 (it holds zero bytes)"
        name = "utf-16" if encoding else _without_mark(data[:_HEAD])
        typed = f"data.encoding={name}, or iconv -f {name} -t utf-8 {path} > {_recoded(path)}"
        raise DataError(_problem(path, f"the file is {kind}", "text in UTF-8", typed))


def _without_mark(head: bytes) -> str:
    """Of utf-16 without its mark: Western letters have their zero behind, or in front."""
    return "utf-16-le" if head[1::2].count(0) >= head[::2].count(0) else "utf-16-be"


def binary_kind(data: bytes) -> str | None:
    """What a file is by its first bytes, if it is no text."""
    return next((kind for start, kind in _BINARY.items() if data.startswith(start)), None)


def _is_binary(head: bytes) -> bool:
    controls = sum(byte < 32 and byte not in b"\t\n\v\f\r\x1b" for byte in head)
    return controls > _FEW_CONTROLS * len(head)


def _refuse_zeros(pieces: Iterable[bytes], path: Path) -> None:
    """Raises DataError at the first zero byte."""
    offset, line = 0, 1
    for piece in pieces:
        place = piece.find(b"\0")
        if place >= 0:
            raise DataError(_zero_byte(path, offset + place, line + piece.count(b"\n", 0, place)))
        offset, line = offset + len(piece), line + piece.count(b"\n")


def _zero_byte(path: Path, offset: int, line: int) -> Problem:
    return _problem(
        f"{path}:{line}",
        f"byte {offset:,} is zero, which no text holds",
        "text in UTF-8",
        f"tr -d '\\000' < {path} > {path.with_name(f'{path.stem}.clean{path.suffix}')}",
    )


def _undecodable(spot: Spot, path: Path, doubt: str) -> Problem:
    likely = likely_encoding(without_utf8(spot.before + spot.after))
    start = max(0, spot.before.rfind(b"\n") + 1, len(spot.before) - 40)
    around = (spot.before[start:] + spot.after[:40].split(b"\n")[0]).decode(likely, "replace")
    return _problem(
        f"{path}:{spot.line}",
        f"byte {spot.offset:,} (0x{spot.after[0]:02x}) is not UTF-8; as {likely}, "
        f"the line reads: {excerpt(around.strip())}; but {doubt}",
        "text in UTF-8: no byte is ever dropped or guessed",
        f"data.encoding={likely} if the line reads right, "
        f"or iconv -f {likely} -t utf-8 {path} > {_recoded(path)}",
    )


def _not_as_said(spot: Spot, path: Path, encoding: str) -> Problem:
    return _problem(
        f"{path}:{spot.line}",
        f"byte {spot.offset:,} (0x{spot.after[0]:02x}) does not fit data.encoding: {encoding}",
        "the encoding that the file has; utf-16 and utf-32 begin with a byte order mark, utf-16-le has none",
        "data.encoding=auto",
    )


def _recoded(path: Path) -> str:
    return str(path.with_name(f"{path.stem}.utf8{path.suffix}"))


def _problem(where: object, what: str, right: str, type: str) -> Problem:
    return Problem(where=str(where), what=what, right=right, type=type)
