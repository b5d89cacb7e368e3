"""Rows made up in the layout that a recipe asks for, where its own data files are not here."""

import csv
import io
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from launcher.data.format import COMPRESSIONS, format_of
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
    if data.context.turns:
        return "dialogue"
    fitting = [layout for layout in LAYOUTS if layout.task == recipe.task and not layout.by_name_only]
    named = [layout for layout in fitting if set(data.columns) <= {role.name for role in layout.roles}]
    if data.columns and named:
        return min(named, key=lambda layout: len(layout.needed)).name
    if recipe.task == "classification":
        return "text_label"
    is_text = Path(data.train_file).suffix == ".txt" or "instruction" not in (data.source or "instruction")
    return "plain_text" if is_text else "instruction"


def suffix_of(name: str) -> str:
    """The ending of a made-up file for one of that name: json lines where its own cannot be written here."""
    suffix = Path(name).suffix.lower()
    return suffix if suffix in (*_TABLES, ".json", ".jsonl", ".txt") else ".jsonl"


def is_text(path: Path) -> bool:
    """Whether a data file can be looked into as text."""
    known = format_of(path)
    return known is not None and known.read is not None and path.suffix.lower() not in COMPRESSIONS


def write_rows(recipe: Recipe, path: Path, num_rows: int, seed: int) -> Path:
    """A data file with the columns of the recipe, in the format that `path` ends in."""
    layout = layout_of(recipe)
    names = {role.name: recipe.data.columns.get(role.name, role.name) for role in LAYOUTS.get(layout).roles}
    labels = recipe.data.labels or _LABELS
    made_up = made(layout, num_rows, seed, labels)
    rows = [{names[role]: value for role, value in row.items() if role in names} for row in made_up]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_written(path.suffix.lower(), rows), encoding="utf-8", newline="")
    return path


def made(layout: str, num_rows: int, seed: int, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows by role; lengths differ much, and every label occurs where there are rows enough."""
    draw = random.Random(seed)

    def text(most: int) -> str:
        return " ".join(draw.choices(_WORDS, k=draw.randint(3, most)))

    for number in range(num_rows):
        label = labels[number % len(labels)]
        if layout == "instruction":
            yield {"instruction": text(8), "input": text(6) if number % 3 == 0 else "", "output": text(20)}
        elif layout == "prompt_completion":
            yield {"prompt": text(8), "completion": f" {text(20)}"}
        elif layout == "messages":
            yield {
                "turns": [
                    _message("role", "user", "content", text(8)),
                    _message("role", "assistant", "content", text(20)),
                ]
            }
        elif layout == "sharegpt":
            yield {
                "turns": [
                    _message("from", "human", "value", text(8)),
                    _message("from", "gpt", "value", text(20)),
                ]
            }
        elif layout == "plain_text":
            yield {"text": text(40)}
        else:
            yield _labelled(layout, number, text, label)


def _message(speaker: str, who: str, content: str, text: str) -> dict[str, str]:
    return {speaker: who, content: text}


def _labelled(layout: str, number: int, text: Callable[[int], str], label: str) -> dict[str, Any]:
    row: dict[str, Any] = {"text": text(30), "label": label}
    if layout in ("text_pair", "regression"):
        row["pair"] = text(20)
    if layout == "dialogue":
        row |= {"dialogue": number // 5, "position": number % 5, "speaker": text(3)}
    if layout == "regression":
        row["label"] = number / 10
    if layout == "multi_label":
        row["label"] = ", ".join(_LABELS[: number % (len(_LABELS) + 1)])
    return row


def _written(suffix: str, rows: list[dict[str, Any]]) -> str:
    if suffix in _TABLES:
        file = io.StringIO()
        writer = csv.DictWriter(file, [*rows[0]], delimiter=_TABLES[suffix])
        writer.writeheader()
        writer.writerows(rows)
        return file.getvalue()
    if suffix == ".json":
        return json.dumps(rows)
    if suffix == ".txt":
        return "\n\n".join(" ".join(map(str, row.values())) for row in rows) + "\n"
    return "".join(json.dumps(row) + "\n" for row in rows)
