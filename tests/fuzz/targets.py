"""What is fuzzed: how an input is made, how it is handed over, and whether it still parses."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from launcher.backends.accelerate_file import read_file
from launcher.backends.lint import read_ds_file
from launcher.facts import RunArguments, Starter
from launcher.plan.started import resolve_started
from launcher.process.config_files import find_config
from launcher.recipe.check import data_problems
from launcher.recipe.copying import copy_recipe
from launcher.recipe.dump import to_yaml
from launcher.recipe.importing.importer import import_file
from launcher.recipe.importing.text import recipe_text, report
from launcher.recipe.load import load_recipe
from tests.fuzz.data_inputs import parses, read_as_both_tasks, rows
from tests.fuzz.mutations import Seeds, as_yaml, mutated_bytes, mutated_tree, odd_values, places
from tests.fuzz.token_inputs import models, token_options, use_as_both_tasks

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input: bytes of a file with that name, or words; `is_mutation` of a shipped file, as made."""

    name: str
    data: bytes
    is_mutation: bool
    words: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


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
    path = _written(given, folder)
    (copied := folder / "copy.yaml").unlink(missing_ok=True)
    copy_recipe(str(path), copied)
    loaded = load_recipe(str(path))
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


def _data() -> st.SearchStrategy[Input]:
    return rows().map(
        lambda each: Input(name=each.name, data=each.data, is_mutation=each.is_mutation, options=each.options)
    )


def _read(given: Input, folder: Path) -> None:
    read_as_both_tasks(_written(given, folder), given.options)


def _tokens() -> st.SearchStrategy[Input]:
    models()  # made before anything is watched
    return st.builds(_with_options, _data(), token_options())


def _with_options(given: Input, more: dict[str, Any]) -> Input:
    return replace(given, options=given.options | more)


def _use(given: Input, folder: Path) -> None:
    use_as_both_tasks(_written(given, folder), given.options, folder)


_SAMPLES = "tests/recipe/importing/samples/**/*"


def _foreign() -> st.SearchStrategy[Input]:
    """Other tools' files, as YAML and JSON, Python and shell."""
    of_yaml = _files(_trees(f"{_SAMPLES}.y*ml"), _texts(f"{_SAMPLES}.y*ml"), "other.yaml")
    of_json = _files(_trees(f"{_SAMPLES}.json"), _texts(f"{_SAMPLES}.json"), "other.json")
    of_text = [
        mutated_bytes(_texts(f"{_SAMPLES}{ending}")).map(
            partial(_as_input, name=f"other{ending}", is_mutation=True)
        )
        for ending in (".py", ".sh")
    ]
    every = [*[of_yaml] * 5, *[of_json] * 3, *of_text]
    return st.integers(0, len(every) - 1).flatmap(lambda kind: every[kind])


def _as_input(data: bytes, *, name: str, is_mutation: bool) -> Input:
    return Input(name=name, data=data, is_mutation=is_mutation)


def _import(given: Input, folder: Path) -> None:
    found = import_file(_written(given, folder))
    report(found)
    again = folder / "imported.yaml"
    again.write_text(recipe_text(found), encoding="utf-8")
    load_recipe(str(again))


def _foreign_parses(given: Input) -> bool:
    if given.name.endswith(".json"):
        return _json_parses(given)
    return given.name.endswith("yaml") and _yaml_parses(given)


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


TARGETS = (
    Target(name="recipe", inputs=_recipes, call=_load, parses=_yaml_parses),
    Target(name="deepspeed_json", inputs=_ds, call=_lint_ds, parses=_json_parses),
    Target(name="accelerate_yaml", inputs=_accelerate, call=_lint_accelerate, parses=_yaml_parses),
    Target(name="overrides", inputs=_overrides, call=_override, parses=lambda given: True),
    Target(name="data", inputs=_data, call=_read, parses=lambda given: parses(given.name, given.data)),
    Target(name="tokens", inputs=_tokens, call=_use, parses=lambda given: parses(given.name, given.data)),
    Target(name="import", inputs=_foreign, call=_import, parses=_foreign_parses),
)
