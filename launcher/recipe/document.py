"""A recipe file as plain values with the line of each key.

YAML 1.2. What a recipe does not need is refused with its line: tags, duplicate keys, aliases that
lead into themselves, several documents, roots that are no mapping. What the keys mean is not known here.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.main import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from launcher.errors import Problem, RecipeError
from launcher.recipe.provenance import shown
from launcher.recipe.scalars import read_scalar
from launcher.recipe.slips import Slip, odd_space, other_encoding, slip_at, without_colon

MAX_FILE_BYTES = 2**18
MAX_VALUES = 5000
_SHAPE = "key: value lines, such as 'task: classification'"
_PLAIN = "tag:yaml.org,2002:"
_TAGS = {
    _PLAIN + name
    for name in ("null", "bool", "int", "float", "str", "timestamp", "map", "seq", "merge", "value")
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A key's value: plain, or a dict of further entries; the text as typed; the line of the key."""

    value: Any
    raw: Any
    line: int

    def plain(self) -> Any:
        """The value without lines."""
        if isinstance(self.value, dict):
            return {key: entry.plain() for key, entry in self.value.items()}
        return self.value


@dataclass(frozen=True, kw_only=True)
class Document:
    """A recipe file as read."""

    path: Path
    entries: dict[str, Entry]


def _refuse(
    path: Path, what: str, right: str, line: int | None = None, typed: str = "launcher cat quickstart"
) -> RecipeError:
    place = f"{shown(path)}:{line}" if line else shown(path)
    return RecipeError(Problem(where=place, what=what, right=right, type=typed))


def _slipped(path: Path, slip: Slip) -> RecipeError:
    return _refuse(path, slip.what, slip.right, slip.line, slip.type)


def read_text(path: Path) -> str:
    """The file's text. Raises RecipeError for what is no text file of a recipe's size."""
    if not path.exists():
        raise _refuse(path, "there is no such file", "a recipe's file; 'launcher ls' lists the shipped names")
    if not path.is_file():
        raise _refuse(path, "this is no regular file", "one YAML file, not a folder")
    if path.resolve().is_relative_to("/proc") or path.resolve().is_relative_to("/sys"):
        raise _refuse(path, "the kernel answers here, it is no file on a disk", "one YAML file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            size = max(path.stat().st_size, len(data))
            raise _refuse(path, f"{size:,} bytes are too many for a recipe", "15 to 40 lines of text")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is not UTF-8 text"
        if other := other_encoding(data, path):
            raise _refuse(path, f"{what}: the file is {other[0]}", "UTF-8", typed=other[1]) from error
        raise _refuse(path, what, "a text file, saved as UTF-8") from error
    except OSError as error:
        raise _refuse(path, f"cannot be read: {error.strerror}", "a file that you may read") from error


def compose(text: str, path: Path) -> Node | None:
    """The file's YAML nodes, with their marks. Raises RecipeError with the line of a syntax error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # YAML 1.2 allows it: the last one counts
            return YAML(typ="safe", pure=True).compose(text)  # type: ignore[no-any-return]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        if slip := slip_at(text, line, str(error.problem or "")):
            raise _slipped(path, slip) from error
        raise _refuse(path, _syntax(error), _SHAPE, line) from error
    except (YAMLError, ValueError) as error:
        raise _refuse(path, f"this is not YAML text: {str(error).splitlines()[0]}", _SHAPE) from error
    except RecursionError as error:
        raise _refuse(path, "brackets are nested too deeply", "at most a list inside a section") from error


def _syntax(error: MarkedYAMLError) -> str:
    problem = str(error.problem or error.context or "")
    if "'\\t'" in problem:
        return "a tab stands where YAML wants spaces"
    if "another document" in problem:
        return "a second document begins ('---')"
    return f"this is not YAML: {problem}"


class _Reader:
    """Turns one file's nodes into entries, collecting every problem on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.num_values = 0
        self.open_nodes: list[int] = []

    def note(self, node: Node, what: str, right: str, type_: str) -> None:
        where = f"{shown(self.path)}:{node.start_mark.line + 1}"
        self.problems.append(Problem(where=where, what=what, right=right, type=type_))

    def read(self, node: Node) -> tuple[Any, Any]:
        """The node's value, and its text as typed."""
        self.num_values += 1
        if self.num_values > MAX_VALUES:
            raise _refuse(self.path, f"aliases unfold to more than {MAX_VALUES} values", "values written out")
        if id(node) in self.open_nodes:
            self.note(
                node, "an alias leads into itself", "values written out", "the value itself, without & and *"
            )
            return None, None
        self.open_nodes.append(id(node))
        try:
            return self._inside(node)
        finally:
            self.open_nodes.pop()

    def _inside(self, node: Node) -> tuple[Any, Any]:
        tag = str(node.tag)
        if tag not in _TAGS:
            self.note(
                node, f"the tag {tag.removeprefix(_PLAIN)!r}", "plain values without tags", "the value alone"
            )
            return None, None
        if isinstance(node, ScalarNode):
            plain = node.style is None and tag != _PLAIN + "str"
            return (read_scalar(node.value) if plain else node.value), node.value
        if isinstance(node, SequenceNode):
            pairs = [self.read(child) for child in node.value]
            pairs = [(Entry(value=value, raw=raw, line=0).plain(), raw) for value, raw in pairs]
            return [value for value, _ in pairs], [raw for _, raw in pairs]
        assert isinstance(node, MappingNode)
        return (entries := self.mapping(node)), {key: entry.raw for key, entry in entries.items()}

    def mapping(self, node: MappingNode) -> dict[str, Entry]:
        """The entries of a mapping; a key that stands twice is a problem."""
        entries: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.note(
                    key_node, "a key that is a list or a mapping", "a name before the colon", "name: value"
                )
                continue
            key, line = key_node.value, key_node.start_mark.line + 1
            if key in entries:
                what = f"{key}: stands twice, here and in line {entries[key].line}"
                self.note(key_node, what, "each key once", f"remove line {entries[key].line} or line {line}")
                continue
            value, raw = self.read(value_node)
            entries[key] = Entry(value=value, raw=raw, line=line)
        return entries


def read_document(path: Path) -> Document:
    """Read one recipe file. Raises RecipeError with all problems of its form."""
    text = read_text(path)
    if slip := odd_space(text):
        raise _slipped(path, slip)
    root = compose(text, path)
    if root is None or (isinstance(root, ScalarNode) and root.value == ""):
        raise _refuse(path, "the file is empty", _SHAPE)
    if not isinstance(root, MappingNode):
        line = root.start_mark.line + 1
        slip = slip_at(text, line, "") or without_colon(text.splitlines()[line - 1], line)
        what = "the file holds no keys" + (f": {slip.what}" if slip else "")
        raise _refuse(path, what, *((slip.right, slip.line, slip.type) if slip else (_SHAPE, line)))
    reader = _Reader(path)
    try:
        entries, _ = reader.read(root)
    except RecursionError as error:
        raise _refuse(path, "brackets are nested too deeply", "at most a list inside a section") from error
    if reader.problems:
        raise RecipeError(reader.problems)
    return Document(path=path, entries=entries)


def compose_value(text: str, path: Path) -> tuple[Any, Any]:
    """The plain value of a text that stands alone, and as typed. Raises RecipeError for what is no YAML."""
    root = compose(text, path)
    reader = _Reader(path)
    value, raw = reader.read(root) if root is not None else (None, text)
    if reader.problems:
        raise RecipeError(reader.problems)
    return Entry(value=value, raw=raw, line=1).plain(), raw
