"""HTML as text that cannot be injected into: whatever is not `Safe` is escaped, everywhere."""

from collections.abc import Iterable, Sequence
from html import escape

Attribute = str | int | float


class Safe(str):
    """Markup made here. A plain string is text and is escaped."""


def text(value: object) -> Safe:
    """A value as text inside an element or an attribute."""
    return value if isinstance(value, Safe) else Safe(escape(str(value), quote=True))


def join(parts: Iterable[object]) -> Safe:
    """Parts one behind the other."""
    return Safe("".join(map(text, parts)))


def tag(name: str, /, *children: object, **attributes: Attribute) -> Safe:
    """An element. `class_` is written `class`, other underscores become hyphens: `aria_label`."""
    return Safe(f"<{name}{_written(attributes)}>{join(children)}</{name}>")


def empty(name: str, /, **attributes: Attribute) -> Safe:
    """An element without content."""
    return Safe(f"<{name}{_written(attributes)}/>")


def _written(attributes: dict[str, Attribute]) -> str:
    names = (name.rstrip("_").replace("_", "-") for name in attributes)
    return "".join(f' {name}="{text(value)}"' for name, value in zip(names, attributes.values(), strict=True))


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]]) -> Safe:
    """A table whose first column heads its rows; it scrolls sideways where the window is narrow."""
    top = tag("tr", *(tag("th", each, scope="col") for each in head))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", each) for each in row[1:])) for row in rows]
    inner = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)


def folded(summary: object, *children: object) -> Safe:
    """Something that is opened by a click."""
    return tag("details", tag("summary", summary), *children)
