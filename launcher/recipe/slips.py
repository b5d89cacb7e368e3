"""Slips of hand that keep a recipe's text from being read: what they are, and the line to type instead.

Asked only where reading has failed, or for white space that no editor shows.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from launcher.recipe.provenance import shown

_WIDE_COLON = re.compile(r"^(\s*)([\w.-]+)\s*：\s*(.*)$")
_KEY = re.compile(r"^(\s*)([\w.-]+):(\s+(.*))?$")
_ODD_INDENT = re.compile("^[ \t]*[\u00a0\u3000\u2003\u2002]")
_BACKSLASHES = re.compile(r"""^(\s*[\w.-]+:\s+)"([^"]*\\[^"]*)"\s*$""")


@dataclass(frozen=True, kw_only=True)
class Slip:
    """What stands in `line` (from 1), what is right, and what to type."""

    line: int
    what: str
    right: str
    type: str


def odd_space(text: str) -> Slip | None:
    """White space that looks like an indentation and is none for YAML."""
    for number, line in enumerate(text.splitlines(), start=1):
        if _ODD_INDENT.match(line):
            plain = line.replace("\u3000", "  ").replace("\u00a0", " ")
            what = "white space that YAML does not take for an indentation (no-break or full-width)"
            return Slip(line=number, what=what, right="plain spaces", type=plain.rstrip())
    return None


def slip_at(text: str, line: int | None, problem: str) -> Slip | None:
    """The slip behind a syntax error that a parser found in `line` with the words `problem`."""
    lines = text.splitlines()
    if found := _wide_colon(lines):
        return found
    index = min(max((line or 1) - 1, 0), len(lines) - 1)
    if not lines:
        return None
    here = lines[index]
    if "escape" in problem and (match := _BACKSLASHES.match(here)):
        what = "a backslash inside double quotes begins a code"
        return Slip(line=index + 1, what=what, right="single quotes", type=f"{match[1].strip()} '{match[2]}'")
    if "mapping values" in problem:
        return _second_colon(lines, index)
    if "'-'" in problem:
        right = "items below a key of their own, or key: [a, b]"
        return Slip(
            line=index + 1, what="a list item stands where a key belongs", right=right, type="key: [a, b]"
        )
    if "could not find expected ':'" in problem:
        bad = next(
            (at for at in range(index, -1, -1) if lines[at].strip() and not _KEY.match(lines[at])), index
        )
        return without_colon(lines[bad], bad + 1)
    return None


def _wide_colon(lines: list[str]) -> Slip | None:
    for number, line in enumerate(lines, start=1):
        if match := _WIDE_COLON.match(line):
            typed = f"{match[1]}{match[2]}: {match[3]}".rstrip()
            what = "a full-width colon"
            return Slip(line=number, what=what, right="the colon ':' and a space", type=typed)
    return None


def _second_colon(lines: list[str], index: int) -> Slip:
    """`summary: what: is this`, or a key that is indented below a value."""
    key = _KEY.match(lines[index])
    above = next((_KEY.match(line) for line in lines[:index][::-1] if line.strip()), None)
    if key and above and above[4] and len(key[1]) > len(above[1]):
        what = f"{key[2]} is indented deeper than {above[2]} above it, which has a value already"
        typed = f"{above[1]}{lines[index].strip()}"
        return Slip(line=index + 1, what=what, right="the same indentation for keys side by side", type=typed)
    if key and key[4]:
        value = key[4].replace("'", "''")
        what = "a second colon in one line"
        return Slip(line=index + 1, what=what, right="quotes around the text", type=f"{key[2]}: '{value}'")
    what = "a second colon in one line"
    return Slip(line=index + 1, what=what, right="one key a line", type="key: value")


def without_colon(line: str, number: int) -> Slip | None:
    """`extends quickstart`, `learning_rate=1e-4`, `learning_rate:1e-4`."""
    match = re.match(r"^\s*([\w.-]+)\s*(=|:|：|\s)\s*(\S.*)$", line)
    if not match:
        return None
    says = {"=": "an equals sign", ":": "no space behind the colon"}.get(match[2], "no colon")
    typed = f"{match[1]}: {match[3].strip()}"
    return Slip(line=number, what=f"{says}: '{line.strip()[:60]}'", right="key: value", type=typed)


def other_encoding(data: bytes, path: Path) -> tuple[str, str] | None:
    """What else than UTF-8 the bytes are, and the command that turns them into it; None if not known."""
    for name, starts in (("UTF-16", (b"\xff\xfe", b"\xfe\xff")), ("GB18030", ())):
        if starts and not data.startswith(starts):
            continue
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            continue
        if name == "UTF-16" or re.search("[\u4e00-\u9fff]", text):
            return name, f"iconv -f {name} -t UTF-8 {shown(path)} > new{path.suffix or '.yaml'}"
    return None
