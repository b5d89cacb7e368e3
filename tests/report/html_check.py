"""Reads a report as a browser would, and finds what would load something or run something."""

import re
from html.parser import HTMLParser

VOID = {"meta", "line", "circle", "rect", "link", "img", "br"}
_LOADING = ("src", "href", "xlink:href", "action", "data", "poster", "formaction", "srcset", "background")


class Reader(HTMLParser):
    """Every element, the texts of each kind, and faults of structure."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.faults: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        for name, value in attrs:
            if name in _LOADING or name.startswith("on"):
                self.faults.append(f"<{tag} {name}={value!r}>")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def words(self) -> str:
        """All text that a person sees."""
        return "\n".join(
            text for tag, texts in self.texts.items() if tag not in ("script", "style") for text in texts
        )


def read(text: str) -> Reader:
    """The report read, with everything that is wrong with it in `faults`."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    reader.faults += [f"<{tag}> is not closed" for tag in reader.open]
    styles = " ".join(reader.texts.get("style", []))
    reader.faults += re.findall(r"url\([^)]*\)|@import[^;]*", styles)
    known = {"http://www.w3.org/2000/svg"}  # a name space, never fetched
    reader.faults += [url for url in re.findall(r"https?://[^\s\"'<>]+", text) if url not in known]
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    reader.faults += [f"id {name} stands twice" for name in set(ids) if ids.count(name) > 1]
    for _, attributes in reader.tags:
        for name in (attributes.get("aria-labelledby") or "").split():
            if name not in ids:
                reader.faults.append(f"aria-labelledby names {name}, which is not there")
    return reader
