"""Arguments that stand in a Python file: calls such as TrainingArguments(...), and dicts of arguments.

The file is parsed, never run: only values that are written out are read.
"""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem
from launcher.recipe.provenance import shown

_PRINTED = re.compile(r"TrainingArguments\(\n(.*)\n\)", re.DOTALL)
_CALLS = ("TrainingArguments", "SFTConfig", "LoraConfig", "BitsAndBytesConfig")
_DICTS = ("training_args", "training_arguments", "train_args", "args", "arguments")


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The keyword arguments of all calls together, and what was found on the way."""

    values: dict[str, Any] = field(hash=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Computed:
    """A value that only running the file would give; shown as its text."""

    text: str

    def __str__(self) -> str:
        """The expression."""
        return self.text


def read_calls(path: Path, text: str) -> Calls:
    """The arguments in the file. Raises BadValue where there are none, or where it is no Python."""
    if printed := _PRINTED.fullmatch(text.strip()):
        return Calls(values=_printed(printed.group(1)), notes=("read from arguments as they are printed",))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise _refuse(f"{shown(path)}:{line}", "the file is not Python text") from error
    values: dict[str, Any] = {}
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := _called(node)).endswith(_CALLS):
            found.append(f"{name}(...) in line {node.lineno}")
            values |= {_renamed(name, word.arg): _value(word.value) for word in node.keywords if word.arg}
            if name.endswith("LoraConfig"):
                values.setdefault("use_peft", True)
        elif (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Dict)
            and _target(node) in _DICTS
        ):
            found.append(f"{_target(node)} = {{...}} in line {node.lineno}")
            values |= _dictionary(node.value)
    if not values:
        raise _refuse(shown(path), f"no call of {', '.join(_CALLS)} with keyword arguments is in the file")
    return Calls(values=values, notes=(f"read from {', '.join(found)}; the file was not run",))


def _printed(text: str) -> dict[str, Any]:
    """`name=value,` lines as TrainingArguments prints itself: text without quotes, enumerations by name."""
    pairs = [line.rstrip().rstrip(",").partition("=") for line in text.splitlines() if "=" in line]
    return {name.strip(): _printed_value(value) for name, _, value in pairs}


def _printed_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return re.sub(r"^[A-Z]\w+\.([A-Z_]+)$", lambda match: match.group(1).lower(), text)


def _refuse(where: str, what: str) -> BadValue:
    return BadValue(
        Problem(
            where=where,
            what=what,
            right="a file with TrainingArguments(learning_rate=1e-5, ...), or the arguments as JSON",
            type="training_args.to_json_string() in your script prints them",
        )
    )


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _renamed(call: str, name: str) -> str:
    """LoraConfig's short names as the command lines have them."""
    return {"r": "lora_r"}.get(name, name) if call.endswith("LoraConfig") else name


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id.lower() if isinstance(target, ast.Name) else ""


def _dictionary(node: ast.Dict) -> dict[str, Any]:
    return {
        key.value: _value(value)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def _value(node: ast.expr) -> Any:
    """The value where it is written out; dotted names such as torch.bfloat16 as text."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        text = ast.unparse(node)
        return text if text.startswith("torch.") else Computed(text)
