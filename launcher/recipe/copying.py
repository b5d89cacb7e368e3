"""A recipe copied to another place, where everything that it names is still found."""

import json
import shlex
from pathlib import Path

from ruamel.yaml.nodes import MappingNode, ScalarNode

from launcher.errors import BadValue, Problem
from launcher.recipe.document import compose, read_document, read_text
from launcher.recipe.keys import SHORTHANDS
from launcher.recipe.library import PLANNED, SUFFIXES, find, is_shipped
from launcher.recipe.paths import PATH_KEYS, resolve
from launcher.recipe.provenance import shown


def copy_recipe(name_or_file: str, target: Path) -> Path:
    """Copy the recipe, its relative paths mended. Raises BadValue where the target cannot be written."""
    source = find(name_or_file)
    read_document(source)
    target = _target(target, source)
    text = without_plan(mended(read_text(source), source, target))
    try:
        with target.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError as error:
        raise _refuse(target, "this file is there already", "a new name; nothing is overwritten") from error
    except OSError as error:
        raise _refuse(
            target, f"cannot be written: {error.strerror}", "a folder that you may write"
        ) from error
    return target


def without_plan(text: str) -> str:
    """The text without the figures that were planned for it as it was shipped: it is going to be edited."""
    first, _, rest = text.partition("\n")
    return rest if first.startswith(PLANNED) else text


def _target(target: Path, source: Path) -> Path:
    if target.is_dir():
        return target / source.name
    if target.suffix not in SUFFIXES:
        what = f"'{target}' does not end in .yaml, so it could not be told from a shipped name"
        raise _refuse(target, what, "a file that ends in .yaml", target.with_name(f"{target.name}.yaml"))
    return target


def _refuse(target: Path, what: str, right: str, better: Path | None = None) -> BadValue:
    free = better or target.with_name(f"my_{target.name}")
    return BadValue(
        Problem(
            where=shown(target), what=what, right=right, type=f"launcher cp NAME {shlex.quote(shown(free))}"
        )
    )


def mended(text: str, source: Path, target: Path) -> str:
    """The text with each relative path that would be lost at the target written out in full."""
    root = compose(text, source)
    assert isinstance(root, MappingNode)
    for node, path in sorted(_named_files(root, source, target), key=lambda pair: -pair[0].start_mark.index):
        text = (
            text[: node.start_mark.index]
            + json.dumps(str(path), ensure_ascii=False)
            + text[node.end_mark.index :]
        )
    return text


def _named_files(root: MappingNode, source: Path, target: Path) -> list[tuple[ScalarNode, Path]]:
    """The values that name a file which is not found from the target, and that file."""
    scalars = _scalars(root)
    found = [(node, resolve(node.value, source)) for key, node in scalars.items() if key in PATH_KEYS]
    lost = [(node, path) for node, path in found if path.exists() and resolve(node.value, target) != path]
    if ("extends",) in scalars:
        node = scalars[("extends",)]
        parent = find(node.value, beside=source.parent)
        if not is_shipped(parent):
            lost.append((node, parent))
    return lost


def _scalars(root: MappingNode) -> dict[tuple[str, ...], ScalarNode]:
    """The text values of the file by their path, a section of one word unfolded."""
    found: dict[tuple[str, ...], ScalarNode] = {}
    for key, value in root.value:
        if isinstance(value, ScalarNode):
            name = key.value
            found[(name, SHORTHANDS[name]) if name in SHORTHANDS else (name,)] = value
        elif isinstance(value, MappingNode):
            found |= {(key.value, k.value): v for k, v in value.value if isinstance(v, ScalarNode)}
    return found
