"""What the recipe tests share: a working directory of their own, and recipes written into it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.recipe.load import load_recipe

MINIMAL = """\
task: classification
model: some/model
data: {train_file: train.csv}
"""

WriteRecipe = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteRecipe:
    """Write a recipe into the working directory: the minimal one, and more lines."""
    monkeypatch.chdir(tmp_path)

    def write_recipe(more: str = "", *, name: str = "job.yaml", whole: str | None = None) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MINIMAL + more if whole is None else whole, encoding="utf-8")
        return path

    return write_recipe


@pytest.fixture
def refuse() -> Callable[..., RecipeError]:
    """Load what cannot be loaded, and give the error; fails where it loads."""

    def load_and_fail(path: Path | str, *overrides: str) -> RecipeError:
        with pytest.raises(RecipeError) as caught:
            load_recipe(str(path), overrides)
        return caught.value

    return load_and_fail
