"""Rows made up in the layout that a recipe asks for, where its own data files are not here."""

import csv
import io
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from launcher.data.layout import LAYOUTS
from launcher.recipe.schema import Recipe

NUM_TRAIN, NUM_EVAL = 37, 9  # neither is a multiple of a usual batch: the last one is uneven
_WORDS = [
    "film",
    "plot",
    "actor",
    "scene",
    "story",
    "music",
    "ending",
    "it",
    "is",
    "was",
    "not",
    "so",
    "very",
]
_LABELS = ("negative", "positive")
_TABLES = {".csv": ",", ".tsv": "\t"}


def layout_of(recipe: Recipe) -> str:
    """The layout that the recipe names, or the likeliest one for its task, columns and file."""
    data = recipe.data
    if data.layout != "auto":
        return data.layout
    fitting = [layout for layout in LAYOUTS if layout.task == recipe.task]
    if len(fitting) == 1:
        return fitting[0].name
    for layout in fitting:
        if data.columns and set(data.columns) <= {role.name for role in layout.roles}:
            return layout.name
    is_text = Path(data.train_file).suffix == ".txt" or "instruction" not in (data.source or "instruction")
    return "plain_text" if is_text else "instruction"


def write_rows(recipe: Recipe, path: Path, num_rows: int, seed: int) -> Path:
    """A data file with the columns of the recipe, in the format that `path` ends in."""
    layout = layout_of(recipe)
    names = {role.name: recipe.data.columns.get(role.name, role.name) for role in LAYOUTS.get(layout).roles}
    labels = recipe.data.labels or _LABELS
    rows = [{names[role]: text for role, text in row.items()} for row in made(layout, num_rows, seed, labels)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_written(path.suffix.lower(), rows), encoding="utf-8", newline="")
    return path


def made(layout: str, num_rows: int, seed: int, labels: Sequence[str]) -> Iterator[dict[str, str]]:
    """Rows by role; lengths differ much, and every label occurs where there are rows enough."""
    draw = random.Random(seed)

    def text(most: int) -> str:
        return " ".join(draw.choices(_WORDS, k=draw.randint(3, most)))

    for number in range(num_rows):
        if layout == "text_label":
            yield {"text": text(30), "label": labels[number % len(labels)]}
        elif layout == "instruction":
            yield {"instruction": text(8), "input": text(6) if number % 3 == 0 else "", "output": text(20)}
        else:
            yield {"text": text(40)}


def _written(suffix: str, rows: list[dict[str, str]]) -> str:
    if suffix in _TABLES:
        file = io.StringIO()
        writer = csv.DictWriter(file, [*rows[0]], delimiter=_TABLES[suffix])
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue()
    if suffix == ".json":
        return json.dumps(rows)
    if suffix == ".txt":
        return "\n\n".join(" ".join(row.values()) for row in rows) + "\n"
    return "".join(json.dumps(row) + "\n" for row in rows)
