"""HTML that was left in texts: entities and line breaks, counted, and written out where asked."""

import html
import re
from collections import Counter
from collections.abc import Iterable

# Entities that people's texts do not hold by chance; `&notit;` and the like stay.
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def clean(text: str) -> str:
    """`<br />` as a line end, entities as the characters that they stand for (once: &amp;lt; is &lt;)."""
    if "<" in text:
        text = _BREAK.sub("\n", text)
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    return html.unescape(match.group())


def count(texts: Iterable[str]) -> Counter[str]:
    """How many texts hold entities, and how many line breaks."""
    entities = breaks = 0
    for text in texts:
        if "&" in text and _ENTITY.search(text):
            entities += 1
        if "<" in text and _BREAK.search(text):
            breaks += 1
    return Counter(entities=entities, breaks=breaks)


def said(name: str, counts: Counter[str], *, cleaned: bool) -> tuple[str, ...]:
    """What was found, and what was or can be done; nothing where there is none."""
    kinds = [(counts["entities"], "HTML entities such as &amp;"), (counts["breaks"], "<br />")]
    told = " and ".join(f"{number:,} texts hold {kind}" for number, kind in kinds if number)
    if not told:
        return ()
    done = "written out (data.html: clean)" if cleaned else "kept; data.html=clean writes them out"
    return (f"{name}: {told}: {done}",)
