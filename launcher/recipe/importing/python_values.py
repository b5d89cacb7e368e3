"""What an expression of a Python file is worth without running it: values written out, and names of them.

A name counts where the file gives it one written-out value and nothing else (`BATCH = 4`), and `args.lr`
where the file declares `--lr` with a default. Sums and products of numbers are worked out, as in
`gradient_accumulation_steps=BATCH // MICRO`; calls never.
"""

import ast
import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SUMS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
# Lists of lists of lists by name grow without end: more parts than this are nobody's settings.
_MOST_PARTS, _MOST_CHARACTERS = 2000, 2000


class NotWritten(Exception):  # noqa: N818 (an answer, not an error)
    """Only running the file would give the value."""


@dataclass
class Worth:
    """The names of one file. `defaults_used` are the options whose default was taken."""

    names: dict[str, ast.expr] = field(default_factory=dict)
    options: dict[str, ast.expr] = field(default_factory=dict)
    defaults_used: list[str] = field(default_factory=list)
    _left: int = 0

    def of(self, node: ast.expr) -> Any:
        """The value. Raises NotWritten."""
        self._left = _MOST_PARTS
        try:
            return self._of(node)
        except (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError) as error:
            raise NotWritten from error

    def _of(self, node: ast.expr) -> Any:
        self._left -= 1
        if self._left < 0:
            raise NotWritten
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.names:
                return self._of(self.names[name])
            case ast.Attribute(value=ast.Name(), attr=name) if name in self.options:
                self.defaults_used.append(name)
                return self._of(self.options[name])
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                made = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
                return made(self._of(part) for part in parts)
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {
                    self._of(key): self._of(value) for key, value in zip(keys, values, strict=True) if key
                }
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._number(inner)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SUMS:
                return _SUMS[type(sign)](self._number(left), self._number(right))
            case ast.JoinedStr(values=parts):
                return self._joined(parts)
        raise NotWritten

    def _number(self, node: ast.expr) -> int | float:
        value = self._of(node)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18:
            return value
        raise NotWritten

    def _joined(self, parts: list[ast.expr]) -> str:
        """An f-string of plain parts."""
        text = ""
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None or part.conversion != -1:
                    raise NotWritten
                part = part.value
            text += str(self._of(part))
            if len(text) > _MOST_CHARACTERS:
                raise NotWritten
        return text


def worth_in(tree: ast.AST) -> Worth:
    """The file's names and options that have one written-out value."""
    times: Counter[str] = Counter()
    given: dict[str, ast.expr] = {}
    options: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        times.update(_names_bound(node))
        if isinstance(node, ast.Assign):
            for target in node.targets:
                given |= dict(_pairs(target, node.value))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            given |= dict(_pairs(node.target, node.value))
        elif isinstance(node, ast.Call):
            options |= dict(_option(node))
    return Worth(names={name: value for name, value in given.items() if times[name] == 1}, options=options)


def _names_bound(node: ast.AST) -> list[str]:
    """Every name that a part of the file gives a value to, whichever way."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name.partition(".")[0]]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
    return []


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """`A = 1` and `A, B = 1, 2`."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif (
        isinstance(target, ast.Tuple)
        and isinstance(value, ast.Tuple)
        and len(target.elts) == len(value.elts)
        and not any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts))
    ):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, part)


def _option(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """`add_argument("--lr", default=1e-5)`."""
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
        return
    words = {word.arg: word.value for word in node.keywords}
    flags = [
        each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    long = next((flag for flag in flags if flag.startswith("--")), None)
    named = words.get("dest")
    if "default" not in words or long is None:
        return
    dest = named.value if isinstance(named, ast.Constant) else long.removeprefix("--").replace("-", "_")
    yield str(dest), words["default"]
