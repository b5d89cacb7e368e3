"""The manual's page of all keys, docs/recipe.md."""

from collections.abc import Iterator

from launcher.recipe.keys import SHORTHANDS, sections
from launcher.recipe.reference import Key, keys

_HEAD = """\
# Every key of a recipe

Written by `python scripts/make_reference.py` from the option models; a test keeps it so. In the terminal
`launcher keys PATTERN` finds a key, and `launcher cat NAME --provenance` shows every value of a recipe with
where it comes from.

On the command line the last part of a key is enough where it is unique: `learning_rate=1e-5`. The column
*typed* has that form. *Also* are other tools' names that are understood, with a notice. A section of one word
means its first question: {words}.

`extends: NAME|FILE` takes everything from another recipe first. For editors there is a JSON schema,
[recipe.schema.json](recipe.schema.json); how to use it stands [below](#in-an-editor).
"""
_TABLE = """
## {title}

| key | takes | default | what for | typed | also |
| --- | --- | --- | --- | --- | --- |
{rows}
"""
_EDITOR = """
## In an editor

The schema makes editors complete keys, show these descriptions and underline what is wrong. In VS Code, with
the YAML extension of Red Hat, put this line first in a recipe that lies in `recipes/` (any path from the
file, or a URL, will do):

```yaml
# yaml-language-server: $schema=../docs/recipe.schema.json
```

For all recipes of a workspace, in `.vscode/settings.json`:

```json
{"yaml.schemas": {"./docs/recipe.schema.json": ["recipes/*.yaml", "my_recipes/*.yaml"]}}
```

Without a clone, `launcher keys --json-schema > recipe.schema.json` writes it. Other tools' names, and keys of
another section, are underlined by the editor though `launcher check` takes or explains them.
"""


def markdown() -> str:
    """The whole page."""
    tables = [_TABLE.format(title=title, rows="\n".join(map(_row, rows))) for title, rows in grouped(keys())]
    words = ", ".join(f"`{section}: {word}`" for section, word in _examples())
    return _HEAD.format(words=words) + "".join(tables) + _EDITOR


def _examples() -> list[tuple[str, str]]:
    words = {
        "model": "ID",
        "data": "FILE",
        "adapter": "lora",
        "backend": "zero2",
        "hardware": "rtx3090",
        "freeze": "embeddings",
    }
    return [(section, words.get(section, "none")) for section in SHORTHANDS]


def grouped(every: list[Key]) -> Iterator[tuple[str, list[Key]]]:
    """The keys by section, those without one first."""
    yield "At the top", [key for key in every if len(key.path) == 1]
    for section in sections():
        yield section, [key for key in every if key.path[0] == section and len(key.path) > 1]


def _row(key: Key) -> str:
    whose = f" Of {', '.join(f'`{piece}`' for piece in key.pieces)}." if key.pieces else ""
    name = ".".join(key.path[1:]) if len(key.path) > 1 else key.name
    also = ", ".join(f"`{name}`" for name in key.also)
    default = f"`{key.default}`" if key.default not in ("", "-", "required") else key.default
    cells = (f"`{name}`", key.takes, default, key.description + whose, f"`{key.typed}`", also)
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """A bar would end the cell."""
    return text.replace("|", "\\|")
