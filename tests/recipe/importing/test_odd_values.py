"""Whatever stands in a file: it is refused in words, or becomes a recipe that loads and no key is lost."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import RecipeError
from launcher.recipe.check import check
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.draft import flat
from launcher.recipe.importing.importer import Imported, import_file
from launcher.recipe.importing.text import recipe_text, report

ODD: tuple[Any, ...] = (
    *(None, "", "auto", "none", "no", True, False, "true", "False"),
    *(-1, 0, 1, 2, 3, 7, 64, 0.5, 1.5, 1e-5, "1e-5", 1e308, 10**30, "8", "0.1"),
    *("abc", "a: b", "# x", "日本", "x\ny", "../..", "steps", "epoch", "cosine", "lora", "bf16"),
    *(
        [],
        [1],
        ["a", "b"],
        [None],
        [[1]],
        {},
        {"a": 1},
        {"stage": 3},
        {"path": "x.json"},
        [{"path": "x.json"}],
    ),
)
NUM_FILES = 40


def nested(values: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Dotted names inside the dialect's blocks as blocks."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        parts = key.split(".")
        branch = tree
        while len(parts) > 1 and isinstance(branch.setdefault(parts[0], {}), dict):
            branch = branch[parts.pop(0)]
        branch[".".join(parts)] = value
    return tree


def told(found: Imported) -> set[str]:
    together = [part for each in (*found.carried, *found.left) for part in each.theirs.split(" + ")]
    return {*together, *found.quiet, *found.needless}


@pytest.mark.parametrize("name", DIALECTS.names())
def test_odd_values_neither_break_nor_vanish(name: str, tmp_path: Path) -> None:
    dialect, draw = DIALECTS.get(name), random.Random(name)
    keys = [each for row in dialect.rows for each in row.names]
    num_recipes = 0
    for number in range(NUM_FILES):
        content = nested({key: draw.choice(ODD) for key in draw.sample(keys, 12)}, dialect)
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        try:
            found = import_file(path, dialect=name, gpus=draw.choice((None, 1, 2, 3)))
        except RecipeError as error:
            assert all(problem.what and problem.type for problem in error.problems)
            continue
        num_recipes += 1
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(recipe_text(found), encoding="utf-8")
        assert report(found)
        findings = check(str(recipe))
        assert findings.only_data or not findings.problems, (content, findings.problems)
        seen = told(found)
        for key, _ in flat(content, dialect.blocks):
            assert any(each == key or each.startswith(f"{key}.") for each in seen), (content, key)
    assert num_recipes > NUM_FILES // 2
