"""Another tool's file as keys and values: JSON, YAML, a shell command, a list of arguments, Python text.

What is read is text alone: nothing of the file is run.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem, RecipeError
from launcher.recipe.document import compose_value, read_text
from launcher.recipe.importing.python_file import read_calls
from launcher.recipe.importing.shell import Command, commands_in, read_words
from launcher.recipe.provenance import shown
from launcher.twice import key_twice

_READ = (".json", ".yaml", ".yml", ".sh", ".py", ".ipynb")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file's keys and values, and what the command line around them says."""

    path: Path
    text: str
    values: dict[str, Any] = field(hash=False)
    command: Command | None = field(default=None, hash=False)
    is_python: bool = False
    task: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name as a person would type it."""
        return shown(self.path)

    def place(self, key: str) -> str:
        """`file:line` of the first line that has the key."""
        leaf = key.split(" + ")[0].rsplit(".", 1)[-1]
        name = "[-_]".join(map(re.escape, re.split("[-_]", leaf)))
        pattern = re.compile(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", re.IGNORECASE)
        for number, line in enumerate(self.text.splitlines(), start=1):
            if pattern.search(line):
                return f"{self.name}:{number}"
        return self.name


def read_source(path: Path) -> Source:
    """The file as a Source. Raises RecipeError for what is none of the forms."""
    if path.suffix in (".bin", ".pt", ".pth"):
        raise _pickle(path)
    if not path.is_file():
        raise _not_there(path)
    text = read_text(path)
    if path.suffix == ".ipynb":
        return _from_python(path, _code_of_notebook(path, text))
    stripped = text.lstrip("\ufeff \t\r\n")
    if not stripped:
        raise _unreadable(path, "is empty")
    if path.suffix in (".toml", ".ini", ".cfg"):
        raise _unreadable(path, f"is {path.suffix[1:].upper()}, which no tool that is known here takes")
    if stripped[0] in "{[" and path.suffix != ".py":
        return _from_json(path, text)
    if path.suffix == ".py" or re.match(r"\w*(TrainingArguments|Config)\(", stripped):
        return _from_python(path, text)
    if path.suffix == ".json":
        raise _unreadable(path, "is not JSON (line 1); JSON has no comments")
    if path.suffix in (".yaml", ".yml"):
        return _from_yaml(path, text)
    return _from_text(path, text)


def _code_of_notebook(path: Path, text: str) -> str:
    """The code cells of a notebook, one below the other, without the lines that only a notebook runs."""
    try:
        cells = json.loads(text)["cells"]
        parts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, "is no notebook") from error
    lines = [line for part in parts for line in part.splitlines()]
    return "\n".join("" if line.lstrip().startswith(("!", "%", "?")) else line for line in lines) + "\n"


def _from_json(path: Path, text: str) -> Source:
    try:
        content = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits are no JSONDecodeError
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        if text.lstrip()[0] == "{":
            return _literal(path, text, line)
        raise _unreadable(path, f"is not JSON{line and f' (line {line[1:]})'}") from error
    if isinstance(content, list) and all(isinstance(word, str | int | float) for word in content):
        command = read_words(["python", "arguments", *map(str, content)])
        return Source(path=path, text=text, values=command.options, command=command)
    if isinstance(content, list) and content and all(isinstance(row, dict) for row in content):
        raise BadValue(
            Problem(
                where=shown(path),
                what="these are rows of data, no settings",
                right="a file of another tool; rows are looked at by launcher data",
                type=f"launcher data {shown(path)}",
            )
        )
    if not isinstance(content, dict):
        raise _unreadable(path, "is neither a JSON object nor a list of arguments")
    return Source(path=path, text=text, values=_unwrapped(content))


def _literal(path: Path, text: str, line: str) -> Source:
    """A Python dict as it is printed: single quotes, True and None."""
    import ast

    try:
        content = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise _unreadable(path, f"is not JSON{line and f' (line {line[1:]})'}") from error
    if not isinstance(content, dict):
        raise _unreadable(path, "is no mapping")
    return Source(path=path, text=text, values=_unwrapped(content))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := key_twice(pairs)) is not None:
        raise BadValue(
            Problem(
                what=f"the key '{twice}' stands twice", right="each key once", type="remove one of the two"
            )
        )
    return dict(pairs)


def _unwrapped(content: dict[str, Any]) -> dict[str, Any]:
    """What stands below `training_args` (a habit of scripts), beside what stands there already."""
    for name in ("training_args", "training_arguments", "TrainingArguments", "train_args"):
        inner = content.get(name)
        if isinstance(inner, dict):
            rest = {key: value for key, value in content.items() if key != name}
            return {**inner, **{key: value for key, value in rest.items() if key not in inner}}
    return content


def _from_yaml(path: Path, text: str) -> Source:
    content, _ = compose_value(text, path)
    if not isinstance(content, dict):
        raise _unreadable(path, "holds no keys")
    return Source(path=path, text=text, values=_unwrapped(content))


def _from_python(path: Path, text: str) -> Source:
    calls = read_calls(path, text)
    values = _unwrapped(calls.values)
    return Source(path=path, text=text, values=values, is_python=True, task=calls.task, notes=calls.notes)


def _from_text(path: Path, text: str) -> Source:
    """A shell script or command where one is in it, else YAML."""
    found = commands_in(text)
    if found:
        best = max(found, key=lambda command: len(command.options))
        others = len(found) - 1
        notes = (f"{others} more command(s) in the file: the one with the most options was read",) * bool(
            others
        )
        return Source(path=path, text=text, values=best.options, command=best, notes=notes)
    try:
        return _from_yaml(path, text)
    except RecipeError as error:
        raise _unreadable(path, "is none of the known forms") from error


def _not_there(path: Path) -> RecipeError:
    what = "this is a folder" if path.is_dir() else "there is no such file"
    inside = sorted(each.name for each in path.iterdir() if each.suffix in _READ) if path.is_dir() else []
    return BadValue(
        Problem(
            where=shown(path),
            what=what,
            right=f"one file of another tool{'; in it: ' + ', '.join(inside[:6]) if inside else ''}",
            type=f"launcher import {shown(path / inside[0])}" if inside else f"ls {shown(path.parent)}",
        )
    )


def _unreadable(path: Path, what: str) -> RecipeError:
    return BadValue(
        Problem(
            where=shown(path),
            what=f"the file {what}",
            right="JSON, YAML, a shell script or a list of arguments of a tool that is known here",
            type="launcher import --help",
        )
    )


def _pickle(path: Path) -> RecipeError:
    return BadValue(
        Problem(
            where=shown(path),
            what="this is a pickle, which can run code when it is read: it is not opened here",
            right="its values as JSON; open it yourself only if you know who wrote it",
            type=f"python -c \"import torch; print(torch.load('{shown(path)}', weights_only=False)"
            '.to_json_string())" > training_args.json',
        )
    )
