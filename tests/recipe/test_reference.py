"""The manual of keys: complete, described, and as the models are."""

from pathlib import Path

import pytest

from launcher.recipe.build import value_at
from launcher.recipe.importing.dialect import DIALECTS
from launcher.recipe.importing.page import filled
from launcher.recipe.keys import known
from launcher.recipe.load import load_recipe
from launcher.recipe.reference import Key, keys, matching
from launcher.recipe.reference_page import markdown

EVERY = keys()


def test_every_key_of_the_schema_is_told() -> None:
    assert {key.path for key in EVERY} >= set(known())
    assert len({key.path for key in EVERY}) == len(EVERY)


@pytest.mark.parametrize("key", EVERY, ids=lambda key: key.name)
def test_every_key_has_a_sentence(key: Key) -> None:
    assert key.description.endswith((".", ".)")), f"{key.name}: describe it, in a sentence"
    assert key.takes


def test_the_shortest_name_means_this_key() -> None:
    for key in EVERY:
        if key.name == "training.learning_rate":
            assert key.typed == "learning_rate"
    loaded = load_recipe("quickstart", ["learning_rate=3e-4"])
    assert value_at(loaded.recipe, ("training", "learning_rate")) == 3e-4


def test_a_pattern_finds_other_tools_names() -> None:
    assert [key.name for key in matching("cutoff_len")] == ["data.max_length"]
    assert "adapter.lora_r" in [key.name for key in matching("lora_r")]
    assert matching("no such thing at all") == []


def test_the_page_is_up_to_date(root: Path) -> None:
    page = (root / "docs" / "recipe.md").read_text(encoding="utf-8")
    assert page == markdown(), "type: python scripts/make_reference.py"


@pytest.mark.parametrize("name", DIALECTS.names())
def test_the_tables_of_the_migration_pages_are_up_to_date(name: str, root: Path) -> None:
    dialect = DIALECTS.get(name)
    page = (root / "docs" / f"{dialect.page}.md").read_text(encoding="utf-8")
    assert page == filled(page, dialect), "type: python scripts/make_reference.py"


@pytest.mark.parametrize("name", DIALECTS.names())
def test_every_row_means_keys_that_there_are(name: str) -> None:
    names = {".".join(path) for path in known()} | {f"data.columns.{role}" for role in ("text", "label")}
    wrong = [
        ours
        for row in DIALECTS.get(name).rows
        if row.kind in ("carried", "together")
        for ours in row.ours.split(", ")
        if ours not in names
    ]
    assert wrong == []


@pytest.mark.parametrize("name", DIALECTS.names())
def test_no_key_has_two_rows_and_what_is_left_has_a_reason(name: str) -> None:
    rows = DIALECTS.get(name).rows
    names = [each for row in rows for each in row.names]
    assert sorted({each for each in names if names.count(each) > 1}) == []
    assert [row.names for row in rows if row.kind == "left" and not row.note] == []
