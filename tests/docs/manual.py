"""The manual as the tests read it: pages, links, anchors, commands, settings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "recipes" / "README.md"]
    if (ROOT / "recipes" / "README.md").exists()
    else [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
INLINE = re.compile(r"`([^`\n]+)`")
# A name in capitals stands for one's own: NAME, FILE, RUN, A, FOLDER/x, ...
STANDS_FOR = re.compile(r"^[A-Z][A-Z_]*(\.[a-z]+)?$|^\.\.\.$|^[A-Z_]+\|[A-Z_|]+$")


@dataclass(frozen=True)
class Place:
    """A piece of a page and where it stands."""

    page: Path
    text: str

    @property
    def name(self) -> str:
        """For messages and test ids."""
        return f"{self.page.relative_to(ROOT)}: {self.text}"


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return FENCE.sub("", read(page))


def blocks(page: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(read(page)) if language in languages]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    return {slug(title) for title in re.findall(r"^#{1,6} +(.+?)\s*$", prose(page), re.MULTILINE)}


def slug(title: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def links() -> Iterator[Place]:
    for page in PAGES:
        yield from (Place(page, link) for link in LINK.findall(prose(page)))


def typed(language: str) -> Iterator[Place]:
    """The lines of blocks in one language, continued ones put together, comments taken off."""
    for page in PAGES:
        for body in blocks(page, language):
            for line in re.sub(r"\\\n\s*", "", body).splitlines():
                text = re.sub(r"\s+# .*|^\s*#.*", "", line).strip()
                if text:
                    yield Place(page, text)


def inline(start: str) -> Iterator[Place]:
    """Code words of the prose that begin so."""
    for page in PAGES:
        yield from (Place(page, text) for text in INLINE.findall(prose(page)) if text.startswith(start))


def words_of(line: str) -> list[list[str]]:
    """The launcher's commands in a line, as words, up to what the shell takes for itself."""
    found: list[list[str]] = []
    for part in re.split(r"\s*(?:&&|;|\|)\s*(?=launcher\b|$)", line):
        words = shlex.split(part.split(" > ")[0].split(" 2>")[0])
        while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
            words = words[1:]
        if words and words[0] == "launcher":
            found.append(words[1:])
    return found


def is_placeholder(word: str) -> bool:
    return STANDS_FOR.match(word) is not None
