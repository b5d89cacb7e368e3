"""Which encoding bytes have that are not UTF-8: taken where the bytes prove it, refused where they do not."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PAIR = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]")
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
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
    high = sum(byte >= 0x80 for byte in data)
    # In Western text high bytes stand alone; in Chinese text nearly every one belongs to a pair.
    if 2 * len(_PAIR.findall(data)) > 0.8 * high:
        return "gb18030"
    return "latin-1" if _NOT_CP1252 & set(data) else "cp1252"


def without_utf8(data: bytes) -> bytes:
    """The bytes without those that are letters in UTF-8."""
    return _UTF8.sub(b"", data)


def guess(data: bytes) -> Guess:
    """What bytes are that are not UTF-8. Decoding with the answer never fails where there is no doubt."""
    if doubt := _damaged(data):
        return Guess(encoding="utf-8", doubt=doubt)
    encoding = likely_encoding(data)
    if encoding == "latin-1":
        return Guess(encoding=encoding, doubt="it holds bytes that cp1252 has no letters for")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        return Guess(encoding=encoding, doubt=f"byte {error.start:,} does not fit it")
    return Guess(encoding=encoding, doubt=_not_chinese(text, data) if encoding == "gb18030" else _odd(text))


def _damaged(data: bytes) -> str:
    """UTF-8 with a few bad bytes is a damaged file, not a file in another encoding."""
    whole = _UTF8.findall(data)
    num_bad = len(_HIGH.findall(without_utf8(data)))
    if len(whole) > num_bad:
        return f"{len(whole):,} characters are UTF-8 and only {num_bad:,} bytes are not: it is damaged"
    return ""


def _not_chinese(text: str, data: bytes) -> str:
    letters = [letter for letter in text if letter > "\x7f"]
    kana = sum("\u3040" <= letter <= "\u30ff" for letter in letters)
    usual = sum("\u3000" <= letter <= "\u9fff" or "\uff00" <= letter <= "\uffef" for letter in letters)
    if usual + sum(letter in _PUNCTUATION for letter in letters) < _ENOUGH * len(letters):
        return "many of its characters would be rare ones"
    if kana > 0.1 * len(letters):
        return "it looks like Japanese (euc_jp)"
    leads = [pair[0] for pair in _PAIR.findall(data) if pair[0] >= 0xB0]
    if sum(lead <= _COMMON_LAST for lead in leads) < 0.7 * len(leads):
        return "many of its characters would be rare ones"
    if len(leads) >= 20 and max(leads) <= _KOREAN_LAST:
        return "it looks like Korean (euc_kr)"
    return ""


def _odd(text: str) -> str:
    """Why text read as cp1252 is not Western; empty where it is."""
    num_letters = sum(letter.isalpha() for letter in text)
    foreign = sum(letter.isalpha() and letter > "\x7f" for letter in text)
    if foreign > _FOREIGN_LETTERS * num_letters:
        return "most of its letters would be accented ones"
    high = [place for place, letter in enumerate(text) if letter > "\x7f"]
    fitting = sum(_fits(text, place) for place in high)
    return "" if fitting >= _ENOUGH * len(high) else "many of its characters would stand where none belongs"


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
