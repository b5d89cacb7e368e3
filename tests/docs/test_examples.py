"""Recipes that the manual shows load, or hold known keys where they are a part only."""

from pathlib import Path

import pytest

from launcher.recipe.document import read_document
from launcher.recipe.load import load_recipe
from launcher.recipe.provenance import Origin
from launcher.recipe.translate import flatten, translate
from tests.docs.manual import PAGES, Place, blocks

EXAMPLES = [
    Place(page, body)
    for page in PAGES
    for body in blocks(page, "yaml")
    if any(line.strip() and not line.lstrip().startswith("#") for line in body.splitlines())
]


@pytest.mark.parametrize("place", EXAMPLES, ids=lambda place: f"{place.page.name}: {place.text[:30]!r}")
def test_a_recipe_of_the_manual_loads(place: Place, tmp_path: Path) -> None:
    path = tmp_path / "example.yaml"
    path.write_text(place.text, encoding="utf-8")
    document = read_document(path)
    layer = translate(flatten(document.entries, Origin(kind="recipe", file=str(path))))
    assert layer.problems == []
    if {"task", "model", "data"} <= document.entries.keys() or "extends" in document.entries:
        load_recipe(str(path))
