"""Which encoding bytes have that are not UTF-8: taken where the bytes prove it, refused where they do not."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launcher.data.misfits import whole_characters

_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = bytes(range(0x80, 0x100))
_NOT_ASCII = re.compile("[^\0-\x7f]")
_LETTER = re.compile("[A-Za-z]")
# cp1252 leaves these bytes undefined.
_NOT_CP1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")
_PUNCTUATION = frozenset("‘’‚“”„–—…•€™£©®°·«»¿¡§´½¼¾²³\u00a0\u00ad‹›†‡¢¥×")
_ENOUGH = 0.9
_FOREIGN_LETTERS = 0.3
_COMMON_LAST = 0xD7  # GB2312 has the common characters first, up to this lead byte
_KOREAN_LAST = 0xC8  # the last lead byte of EUC-KR's syllables; Chinese uses all up to 0xf7


@dataclass(frozen=True, kw_only=True)
class Guess:
    """The likeliest encoding, and why it is not certain; empty where the bytes prove it."""

    encoding: str
    doubt: str = ""


def likely_encoding(data: bytes) -> str:
    """The encoding that bytes which are not UTF-8 most probably have: gb18030, cp1252 or latin-1."""
    seen = _Bytes()
    seen.add(data)
    return seen.likely


def without_utf8(data: bytes) -> bytes:
    """The bytes without those that are letters in UTF-8."""
    return _UTF8.sub(b"", data)


def guess(pieces: Callable[[], Iterator[bytes]]) -> Guess:
    """What bytes are that are not UTF-8. Decoding with the answer never fails where there is no doubt.

    `pieces` gives them from the start; they are looked through twice.
    """
    seen, read = _Bytes(), _Letters()
    for piece in whole_characters(pieces()):
        seen.add(piece)
    if seen.damage:
        return Guess(encoding="utf-8", doubt=seen.damage)
    if seen.likely == "latin-1":
        return Guess(encoding=seen.likely, doubt="it holds bytes that cp1252 has no letters for")
    start = 0
    for piece in whole_characters(pieces()):
        try:
            read.add(piece.decode(seen.likely))
        except UnicodeDecodeError as error:
            return Guess(encoding=seen.likely, doubt=f"byte {start + error.start:,} does not fit it")
        start += len(piece)
    return Guess(
        encoding=seen.likely, doubt=_not_chinese(read, seen) if seen.likely == "gb18030" else read.odd
    )


class _Bytes:
    """What the bytes of a file tell, counted piece by piece."""

    def __init__(self) -> None:
        self.num_high = self.num_pairs = self.num_whole = self.num_strays = 0
        self.fits_cp1252, self.leads = True, Counter[int]()

    def add(self, data: bytes) -> None:
        high = _num_high(data)
        if not high:
            return
        pairs = _PAIR.findall(data)
        self.num_high += high
        self.num_pairs += len(pairs)
        self.num_whole += len(_UTF8.findall(data))
        self.num_strays += _num_high(without_utf8(data))
        self.fits_cp1252 = self.fits_cp1252 and _NOT_CP1252.isdisjoint(data)
        self.leads.update(pair[0] for pair in pairs if pair[0] >= 0xB0)

    @property
    def likely(self) -> str:
        """In Western text high bytes stand alone; in Chinese text nearly every one belongs to a pair."""
        if 2 * self.num_pairs > 0.8 * self.num_high:
            return "gb18030"
        return "cp1252" if self.fits_cp1252 else "latin-1"

    @property
    def damage(self) -> str:
        """UTF-8 with a few bad bytes is a damaged file, not a file in another encoding."""
        if self.num_whole <= self.num_strays:
            return ""
        counts = f"{self.num_whole:,} characters are UTF-8 and only {self.num_strays:,} bytes are not"
        return f"{counts}: it is damaged"


def _num_high(data: bytes) -> int:
    return len(data) - len(data.translate(None, _HIGH))


class _Letters:
    """What the decoded text tells, counted piece by piece."""

    def __init__(self) -> None:
        self.num_high = self.num_letters = self.num_foreign = self.num_fitting = 0
        self.num_kana = self.num_usual = 0

    def add(self, text: str) -> None:
        self.num_letters += len(_LETTER.findall(text))
        for found in _NOT_ASCII.finditer(text):
            letter, place = found[0], found.start()
            self.num_high += 1
            self.num_letters += letter.isalpha()
            self.num_foreign += letter.isalpha()
            self.num_fitting += _fits(text, place)
            self.num_kana += "\u3040" <= letter <= "\u30ff"
            is_chinese = "\u3000" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uffef"
            self.num_usual += is_chinese or letter in _PUNCTUATION

    @property
    def odd(self) -> str:
        """Why text read as cp1252 is not Western; empty where it is."""
        if self.num_foreign > _FOREIGN_LETTERS * self.num_letters:
            return "most of its letters would be accented ones"
        if self.num_fitting >= _ENOUGH * self.num_high:
            return ""
        return "many of its characters would stand where none belongs"


def _not_chinese(read: _Letters, seen: _Bytes) -> str:
    if read.num_usual < _ENOUGH * read.num_high:
        return "many of its characters would be rare ones"
    if read.num_kana > 0.1 * read.num_high:
        return "it looks like Japanese (euc_jp)"
    num_leads = seen.leads.total()
    if sum(count for lead, count in seen.leads.items() if lead <= _COMMON_LAST) < 0.7 * num_leads:
        return "many of its characters would be rare ones"
    if num_leads >= 20 and max(seen.leads) <= _KOREAN_LAST:
        return "it looks like Korean (euc_kr)"
    return ""


def _fits(text: str, place: int) -> bool:
    letter = text[place]
    if not letter.isalpha():
        return letter in _PUNCTUATION
    before = text[place - 1] if place else " "
    return not (letter.isupper() and before.islower())  # caFÉ never has the É after a small letter


def known_encoding(name: str) -> bool:
    """Whether Python has a text encoding of that name."""
    import codecs

    try:
        return codecs.lookup(name)._is_text_encoding
    except (LookupError, ValueError):
        return False


def byte_orders() -> Iterator[tuple[bytes, str]]:
    """Marks at a file's start that say utf-16 or utf-32."""
    yield from ((b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"))
    yield from ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
