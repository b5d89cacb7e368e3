"""Data files as strangers send them: shipped rows with other cells, bytes, names, and ways to read."""

import csv
import io
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from launcher.data.format import endings
from launcher.data.layout import LAYOUTS
from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import LauncherError
from tests.fuzz.mutations import Seeds, mutated_bytes, mutated_tree, odd_values

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("classification", "causal_lm")
_ROLES = (
    *("role", "content", "from", "value", "label", "text", "instruction", "input", "output", "messages"),
    *("conversations", "labels", "text_pair", "prompt", "completion", "system", "utterance", "speaker"),
)
_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".txt")
_OWN = (
    (".csv", b"text,label\nhello there,1\nNA,0\nNone,1\n,0\nwell,1\nthe end,0\n"),
    (".csv", b"text,labels\na film,good;long\nanother,bad\nthird,good\nfourth,bad;long\n"),
    (".csv", b"sentence1,sentence2,score\na man,a person,4.5\na dog,a cat,2\nx,y,0.1\nz,w,3\n"),
    (".tsv", b"id\tdialogue\tutterance\tspeaker\ttext\tlabel\n1\t0\t0\tA\thi\tjoy\n2\t0\t1\tB\tno\tanger\n"),
    (".jsonl", b'{"prompt": "1+1=", "completion": " 2"}\n{"prompt": "2+2=", "completion": " 4"}\n' * 3),
    (".json", b'[{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]'),
)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A file's name and bytes, the options to read it with, and whether it comes from shipped rows."""

    name: str
    data: bytes
    is_mutation: bool
    options: dict[str, Any] = field(default_factory=dict)


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    """Short beginnings of shipped data, whole rows of them, and a few of shapes that none has."""
    names = ("recipes/data/**/*.*", "tests/data/samples/**/*.*", "launcher/hardware/gpus.csv")
    found = [path for name in names for path in sorted(ROOT.glob(name)) if path.suffix in _ENDINGS]
    return (*((path.suffix, _head(path)) for path in found), *_OWN)


def _head(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".json":
        rows = json.loads(data)
        return json.dumps(rows[:6], ensure_ascii=False, indent=1).encode() if isinstance(rows, list) else data
    lines = data.splitlines(keepends=True)[:12]
    return b"".join(lines if path.suffix != ".txt" else [line[:300] for line in lines])


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Mostly changed cells; then changed bytes, another ending, or bytes from nowhere."""
    suffix, seed = seeds()[draw(st.integers(0, len(seeds()) - 1))]
    endings_ = tuple(ending for ending in endings() if "parquet" not in ending)
    name = f"rows{suffix}" if draw(st.integers(0, 11)) else f"rows{draw(st.sampled_from(endings_))}"
    options = draw(_options()) if draw(st.booleans()) else {}
    kind = draw(st.integers(0, 9))
    if kind == 9:
        data = draw(st.binary(max_size=120))
        return Rows(name=name, data=data, is_mutation=False, options=options)
    data = draw(_cells(suffix, seed)) if kind < 8 else draw(mutated_bytes((seed,)))
    return Rows(name=name, data=data, is_mutation=True, options=options)


def _options() -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from((*_ROLES, "", "a.0.b", "text+label", "@file", "messages.0.content", "..", "0"))
    return st.fixed_dictionaries(
        {},
        optional={
            "format": st.sampled_from(("auto", "csv", "json", "txt", "tsv", "jsonl", "nosuch")),
            "encoding": st.sampled_from(("auto", "utf-8", "gb18030", "cp1252", "utf-16", "rot13", "nosuch")),
            "layout": st.sampled_from((*LAYOUTS.names(), "nosuch")),
            "html": st.sampled_from(("keep", "clean")),
            "repair_c1": st.booleans(),
            "drop_duplicates": st.booleans(),
            "empty_text": st.sampled_from(("auto", "drop", "error", "keep")),
            "columns": st.dictionaries(names, names, max_size=2),
            "column_names": st.lists(names, min_size=1, max_size=4).map(tuple),
            "labels": st.lists(st.sampled_from(("0", "1", "joy", "", "good")), max_size=3).map(tuple),
            "fill": st.dictionaries(names, names, max_size=1),
            "max_train_rows": st.integers(1, 5),
            "class_weights": st.sampled_from(("none", "balanced")),
            "eval_fraction": st.sampled_from((0.01, 0.3, 0.99)),
            "context": st.fixed_dictionaries({"turns": st.integers(0, 3)}),
        },
    )


@st.composite
def _cells(draw: st.DrawFn, suffix: str, seed: bytes) -> bytes:
    """The same rows with other values in some cells, written as such a file is written."""
    if suffix == ".json":
        tree = draw(mutated_tree(Seeds((json.loads(seed),), _ROLES)))
        return json.dumps(tree, ensure_ascii=draw(st.booleans())).encode("utf-8", "replace")
    if suffix == ".jsonl":
        found = [json.loads(line) for line in seed.splitlines() if line.strip()]
        tree = draw(mutated_tree(Seeds((found,), _ROLES)))
        lines = tree if isinstance(tree, list) else [tree]
        return b"\n".join(json.dumps(line).encode("utf-8", "replace") for line in lines)
    if suffix == ".txt":
        lines = list(seed.split(b"\n"))
        lines[draw(st.integers(0, len(lines) - 1))] = draw(st.text(max_size=30)).encode("utf-8", "replace")
        return b"\n".join(lines)
    return draw(_table(suffix, seed))


@st.composite
def _table(draw: st.DrawFn, suffix: str, seed: bytes) -> bytes:
    delimiter = "\t" if suffix == ".tsv" else ","
    table = list(csv.reader(io.StringIO(seed.decode("utf-8-sig", "replace")), delimiter=delimiter))
    table = [row for row in table if row] or [[""]]
    for _ in range(draw(st.integers(1, 4))):
        row = table[draw(st.integers(0, len(table) - 1))]
        value = draw(st.one_of(odd_values, st.sampled_from(("0", "1", "-1", "NA", "nan", "1.5", "a;b"))))
        row[draw(st.integers(0, len(row) - 1))] = str(value)
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(table)
    return out.getvalue().encode("utf-8", "replace")


def read_as_both_tasks(path: Path, options: dict[str, Any]) -> None:
    """As a recipe would. Raises LauncherError where neither task takes the rows."""
    asked = {"train_file": str(path), "eval_fraction": 0.3, "empty_text": "drop"} | options
    refused: list[LauncherError] = []
    for task in TASKS:
        try:
            read_splits(DataOptions.model_validate(asked), path, None, task, 1)
        except LauncherError as error:
            refused.append(error)
    if len(refused) == len(TASKS):
        raise refused[0]


def parses(name: str, data: bytes) -> bool:
    """By the standard library's own readers."""
    try:
        text = data.decode("utf-8-sig")
        if name.endswith((".jsonl", ".ndjson")):
            return bool([json.loads(line) for line in text.split("\n") if line.strip()])
        if name.endswith(".json"):
            return bool(json.loads(text))
        return bool(list(csv.reader(io.StringIO(text, newline="")))) if ".txt" not in name else bool(text)
    except (ValueError, RecursionError, csv.Error):
        return False
