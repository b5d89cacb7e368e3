"""Where the bytes of a file do not fit an encoding: found piece by piece, whatever the file's size."""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

AROUND = 100_000
_ALONE = (b"\n", b" ", b",", b'"')  # never a part of a longer character, in UTF-8, gb18030 or cp1252


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A byte of a file: its offset, its line (from 1), and what stands before it and from it on."""

    offset: int
    line: int
    before: bytes
    after: bytes

    @property
    def bytes_of_line(self) -> bytes:
        """Its line, as far as it is at hand."""
        return self.before[self.before.rfind(b"\n") + 1 :] + self.after.split(b"\n", 1)[0]


def first_misfit(pieces: Iterable[bytes], encoding: str) -> int | None:
    """The offset of the first byte that does not fit; None where all do."""
    decoder, fed = codecs.getincrementaldecoder(encoding)("strict"), 0
    try:
        for piece in pieces:
            fed += len(piece)
            decoder.decode(piece)
        decoder.decode(b"", True)
    except UnicodeDecodeError as error:  # of what the decoder had kept, and the last piece
        return fed - len(error.object) + error.start
    except UnicodeError:  # utf-16 without a byte order mark
        return 0
    return None


def spot_at(pieces: Iterable[bytes], offset: int) -> Spot:
    """The byte at an offset, with up to `AROUND` bytes on both sides."""
    before, after, line, seen = b"", b"", 1, 0
    for piece in pieces:
        split = max(0, min(len(piece), offset - seen))
        line += piece.count(b"\n", 0, split)
        before = (before + piece[:split])[-AROUND:]
        after += piece[split:]
        seen += len(piece)
        if len(after) >= AROUND:
            break
    return Spot(offset=offset, line=line, before=before, after=after[:AROUND])


def whole_characters(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, divided where no character is divided."""
    rest = b""
    for piece in pieces:
        joined = rest + piece
        end = 1 + max(map(joined.rfind, _ALONE))
        rest = joined[end:]
        if end:
            yield joined[:end]
    if rest:
        yield rest
