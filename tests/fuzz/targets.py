"""What is fuzzed: how an input is made, how it is handed over, and whether it still parses."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from launcher.backends.accelerate_file import read_file
from launcher.backends.lint import read_ds_file
from launcher.data.format import endings
from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import LauncherError
from launcher.facts import RunArguments, Starter
from launcher.plan.started import resolve_started
from launcher.process.config_files import find_config
from launcher.recipe.check import data_problems
from launcher.recipe.dump import to_yaml
from launcher.recipe.load import load_recipe
from tests.fuzz.mutations import Seeds, as_yaml, mutated_bytes, mutated_tree, odd_values, places

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("classification", "causal_lm")


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input: bytes of a file with that name, or words; `is_mutation` of a shipped file, as made."""

    name: str
    data: bytes
    is_mutation: bool
    words: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Target:
    """A door for strangers' input. `call(input, folder)` must raise nothing but LauncherError."""

    name: str
    inputs: Callable[[], st.SearchStrategy[Input]]
    call: Callable[[Input, Path], object]
    parses: Callable[[Input], bool]


def _written(given: Input, folder: Path) -> Path:
    path = folder / given.name
    path.write_bytes(given.data)
    return path


@cache
def _trees(pattern: str) -> Seeds:
    return Seeds(tuple(_tree(path) for path in sorted(ROOT.glob(pattern))))


@cache
def _tree(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


@st.composite
def _files(draw: st.DrawFn, seeds: Seeds, texts: tuple[bytes, ...], name: str) -> Input:
    """Mostly changed trees; then changed text, and text from nowhere."""
    kind = draw(st.integers(0, 9))
    if kind < 8:
        write = as_yaml if name.endswith("yaml") else partial(json.dumps, indent=1)
        tree = draw(mutated_tree(seeds))
        return Input(name=name, data=write(tree).encode("utf-8", "replace"), is_mutation=True)
    if kind == 8:
        return Input(name=name, data=draw(mutated_bytes(texts)), is_mutation=True)
    foreign = st.one_of(st.binary(max_size=80), st.text(max_size=80).map(lambda text: text.encode()))
    return Input(name=name, data=draw(foreign), is_mutation=False)


def _texts(pattern: str, limit: int = 40_000) -> tuple[bytes, ...]:
    return tuple(path.read_bytes()[:limit] for path in sorted(ROOT.glob(pattern)))


def _recipes() -> st.SearchStrategy[Input]:
    return _files(_trees("recipes/**/*.yaml"), _texts("recipes/**/*.yaml"), "job.yaml")


def _load(given: Input, folder: Path) -> None:
    loaded = load_recipe(str(_written(given, folder)))
    data_problems(loaded)
    assert load_recipe(str(_again(folder, to_yaml(loaded.recipe)))).recipe == loaded.recipe


def _again(folder: Path, text: str) -> Path:
    path = folder / "again.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _ds() -> st.SearchStrategy[Input]:
    return _files(_trees("ds_configs/*.json"), _texts("ds_configs/*.json"), "ds.json")


def _lint_ds(given: Input, folder: Path) -> None:
    path = _written(given, folder)
    read_ds_file(path)
    starter = Starter(name="deepspeed", world_size=2, local_world_size=2, config_file=str(path))
    resolve_started(RunArguments(recipe="quickstart", ds=str(path)), starter)


def _accelerate() -> st.SearchStrategy[Input]:
    return _files(_trees("accelerate_configs/*.yaml"), _texts("accelerate_configs/*.yaml"), "accelerate.yaml")


def _lint_accelerate(given: Input, folder: Path) -> None:
    found = read_file(_written(given, folder))
    if found.ds_file:
        find_config(found.ds_file)


@cache
def _setting_names() -> tuple[str, ...]:
    trees = _trees("recipes/**/*.yaml").trees
    dotted = {".".join(map(str, path)) for tree in trees for path in places(tree)}
    return tuple(sorted(dotted | {name.rpartition(".")[2] for name in dotted}))


def _overrides() -> st.SearchStrategy[Input]:
    values = st.one_of(
        odd_values.map(lambda value: value if isinstance(value, str) else json.dumps(value)),
        st.sampled_from(("[a, b", "{a: b", "{", "[", '"', "'x", "[&a *a]", "{<<: x}", "!!int 3", "[" * 4000)),
        st.text(max_size=20),
    )
    known = st.tuples(st.sampled_from(_setting_names()), values).map("=".join)
    right = st.sampled_from(
        ("learning_rate=1e-5", "seed=3", "max_length=64", "save_steps=0.5 epochs", "tf32=no")
    )
    many = st.lists(st.one_of(known, st.text(max_size=20), values), min_size=1, max_size=3)
    words = st.one_of(known.map(lambda word: [word]), st.tuples(right, known).map(list), many)
    return words.map(lambda each: Input(name="", data=b"", is_mutation=False, words=tuple(each)))


def _override(given: Input, folder: Path) -> None:
    load_recipe("quickstart", given.words)


@cache
def _data_seeds() -> tuple[tuple[str, bytes], ...]:
    """Short beginnings of shipped data, whole rows of them."""
    names = ("recipes/data/**/*.*", "tests/data/samples/**/*.*", "launcher/hardware/gpus.csv")
    found = [path for name in names for path in sorted(ROOT.glob(name)) if path.suffix in _ENDINGS]
    return tuple((path.suffix, _head(path)) for path in found)


_ROLES = (
    *("role", "content", "from", "value", "label", "text", "instruction", "input", "output", "messages"),
    *("conversations", "labels", "text_pair", "prompt", "completion", "system"),
)
_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".txt")


def _head(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".json":
        rows = json.loads(data)
        return json.dumps(rows[:6], ensure_ascii=False, indent=1).encode() if isinstance(rows, list) else data
    lines = data.splitlines(keepends=True)[:12]
    return b"".join(lines if path.suffix != ".txt" else [line[:300] for line in lines])


@st.composite
def _data(draw: st.DrawFn) -> Input:
    suffix, seed = draw(st.sampled_from(_data_seeds()))
    name = f"rows{suffix}" if draw(st.integers(0, 9)) else f"rows{draw(st.sampled_from(_all_endings()))}"
    kind = draw(st.sampled_from(("cells", "cells", "cells", "bytes", "bytes", "strange")))
    if kind == "strange":
        return Input(name=name, data=draw(st.binary(max_size=120)), is_mutation=False)
    data = draw(_cells(suffix, seed)) if kind == "cells" else draw(mutated_bytes((seed,)))
    return Input(name=name, data=data, is_mutation=True, words=(draw(st.sampled_from(TASKS)),))


def _all_endings() -> tuple[str, ...]:
    return tuple(ending for ending in endings() if "parquet" not in ending)


@st.composite
def _cells(draw: st.DrawFn, suffix: str, seed: bytes) -> bytes:
    """The same rows with other values in some cells, written as such a file is written."""
    if suffix == ".json":
        tree = draw(mutated_tree(Seeds((json.loads(seed),), _ROLES)))
        return json.dumps(tree, ensure_ascii=draw(st.booleans())).encode("utf-8", "replace")
    if suffix == ".jsonl":
        rows = tuple([json.loads(line) for line in seed.splitlines() if line.strip()])
        tree = draw(mutated_tree(Seeds((list(rows),), _ROLES)))
        rows = tree if isinstance(tree, list) else [tree]
        return b"\n".join(json.dumps(row).encode("utf-8", "replace") for row in rows)
    if suffix == ".txt":
        lines = list(seed.split(b"\n"))
        lines[draw(st.integers(0, len(lines) - 1))] = draw(st.text(max_size=30)).encode("utf-8", "replace")
        return b"\n".join(lines)
    return draw(_table(suffix, seed))


@st.composite
def _table(draw: st.DrawFn, suffix: str, seed: bytes) -> bytes:
    delimiter = "\t" if suffix == ".tsv" else ","
    rows = list(csv.reader(io.StringIO(seed.decode("utf-8-sig", "replace")), delimiter=delimiter))
    for _ in range(draw(st.integers(1, 4))):
        row = draw(st.sampled_from([row for row in rows if row] or [[""]]))
        value = draw(st.one_of(odd_values, st.sampled_from(("0", "1", "-1", "NA", "nan", "1.5", "a;b"))))
        row[draw(st.integers(0, len(row) - 1))] = str(value)
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode("utf-8", "replace")


def _read(given: Input, folder: Path) -> None:
    """As a recipe would: one file, both tasks' layouts tried by themselves, the rest left to defaults."""
    path = _written(given, folder)
    options = DataOptions.model_validate(
        {"train_file": str(path), "eval_fraction": 0.3, "empty_text": "drop"}
    )
    refused: list[LauncherError] = []
    for task in TASKS:
        try:
            read_splits(options, path, None, task, 1)
        except LauncherError as error:
            refused.append(error)
    if len(refused) == len(TASKS):
        raise refused[0]


def _yaml_parses(given: Input) -> bool:
    try:
        return isinstance(YAML(typ="safe", pure=True).load(given.data.decode("utf-8-sig")), dict)
    except Exception:  # noqa: BLE001 (whatever its own parser does not like)
        return False


def _json_parses(given: Input) -> bool:
    try:
        return isinstance(json.loads(given.data), dict)
    except (ValueError, RecursionError):
        return False


def _data_parses(given: Input) -> bool:
    """By the standard library's readers: rows that are not empty."""
    try:
        text = given.data.decode("utf-8-sig")
        if given.name.endswith((".json",)):
            return bool(json.loads(text))
        if given.name.endswith((".jsonl", ".ndjson")):
            return bool([json.loads(line) for line in text.split("\n") if line.strip()])
        return bool(list(csv.reader(io.StringIO(text, newline="")))) if "csv" in given.name else bool(text)
    except (ValueError, RecursionError, csv.Error):
        return False


TARGETS = (
    Target(name="recipe", inputs=_recipes, call=_load, parses=_yaml_parses),
    Target(name="deepspeed_json", inputs=_ds, call=_lint_ds, parses=_json_parses),
    Target(name="accelerate_yaml", inputs=_accelerate, call=_lint_accelerate, parses=_yaml_parses),
    Target(name="overrides", inputs=_overrides, call=_override, parses=lambda given: True),
    Target(name="data", inputs=_data, call=_read, parses=_data_parses),
)
