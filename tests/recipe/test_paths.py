"""Where a file that a recipe names is sought."""

from pathlib import Path
from typing import Any

from launcher.recipe.library import folder
from launcher.recipe.paths import candidates, resolve


def test_the_order_is_beside_the_recipe_then_here_then_shipped(write: Any, tmp_path: Path) -> None:
    recipe = write(name="sub/job.yaml")
    here, beside = tmp_path / "a.csv", tmp_path / "sub" / "a.csv"
    assert candidates("a.csv", recipe) == [beside, here, folder() / "a.csv"]
    here.touch()
    assert resolve("a.csv", recipe) == here
    beside.touch()
    assert resolve("a.csv", recipe) == beside
    assert resolve(str(here), recipe) == here
    assert resolve("data/identity.json", recipe) == folder() / "data" / "identity.json"


def test_what_is_nowhere_is_the_preferred_place(write: Any, tmp_path: Path) -> None:
    recipe = write(name="sub/job.yaml")
    assert resolve("none.csv", recipe) == tmp_path / "sub" / "none.csv"
    assert resolve("x" * 5000, recipe).name == "x" * 5000


def test_the_home_folder_is_understood(write: Any) -> None:
    assert candidates("~/a.csv", write()) == [Path.home() / "a.csv"]
