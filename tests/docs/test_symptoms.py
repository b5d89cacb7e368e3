"""What the manual quotes as seen is what the program says, or stands in the list of what others say."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.manual import INLINE, ROOT, prose

PAGES = ("symptoms", "oom", "slow", "hangs", "disk", "quality")
# Said by the system, by libraries or by other programs.
BY_OTHERS = ("No space left on device", "invalid device ordinal", "Bus error")
SHORTEST = 10


@cache
def said() -> str:
    """The package's text, with what stands in pieces over several lines put together."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "launcher").rglob("*.py"))
    return re.sub(r"\s+", " ", re.sub(r'"\s*\n\s*f?"', "", text))


def quotes(page: str) -> list[str]:
    """Quoted text of several words in the first column of tables."""
    rows = [line for line in prose(ROOT / "docs" / f"{page}.md").splitlines() if line.startswith("| ")]
    cells = [row.split(" | ")[0] for row in rows]
    return [text for cell in cells for text in INLINE.findall(cell) if " " in text and "=" not in text]


def pieces(quote: str) -> list[str]:
    """A quote without what differs from run to run."""
    parts = re.split(r"\.\.\.|\b[N\d][\d.,]*\b|[{}()]", quote)
    return [part.strip(" :,;") for part in parts if len(part.strip(" :,;")) >= SHORTEST]


ALL = [(page, quote) for page in PAGES for quote in quotes(page)]


@pytest.mark.parametrize(("page", "quote"), ALL)
def test_a_quoted_message_is_said(page: str, quote: str) -> None:
    if quote in BY_OTHERS or re.match(r"launcher |make |python |accelerate |--", quote):
        return
    missing = [piece for piece in pieces(quote) if piece not in said()]
    assert missing == [], f"docs/{page}.md quotes what nobody says"


def test_there_are_quotes() -> None:
    assert len(ALL) > 15
    assert Path(ROOT / "docs" / "oom.md").exists()
    assert "the ranks waited for one another" in said()
    assert "nobody says this at all" not in said()
