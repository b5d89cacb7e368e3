"""Killed -9 between any two changes on the disk, then resumed: the undisturbed run, bit for bit.

Every point: `python -m pytest tests/train/test_killed_anywhere.py -m long`.
"""

import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.train import forked
from tests.train.conftest import WriteRecipe
from tests.train.test_resume import same_run

SAMPLE, SEED = 3, 45


class Undisturbed:
    """A run with dropout that was left alone, its recipe, and the number of changes that it made."""

    def __init__(self, recipe: Path, folder: Path, asynchronous: bool) -> None:
        self.recipe, self.folder = recipe, folder
        self.more = [f"async_save={str(asynchronous).lower()}"]
        count = folder / "count"
        done = forked.run(self.words("whole"), folder / "log", forked.counted(self.run("whole"), count))
        assert done.code == 0, done.said
        self.num_changes = int(count.read_text())

    def words(self, name: str) -> list[str]:
        return ["--recipe", str(self.recipe), "--name", name, "--resume", *self.more]

    def run(self, name: str) -> Path:
        return self.recipe.parent / "runs" / name

    def kill_and_resume(self, number: int) -> None:
        """Killed at one change, every third time once more in the repetition, then resumed to the end."""
        name = "killed"
        shutil.rmtree(self.run(name), ignore_errors=True)
        for place in (number, number // 2 + 1)[: 1 + (number % 3 == 0)]:
            ended = forked.run(self.words(name), self.folder / "log", forked.killed_at(self.run(name), place))
            assert ended.code in (-signal.SIGKILL, 0), ended.said
        done = forked.run(self.words(name), self.folder / "log")
        assert done.code == 0, f"killed at {number}\n{done.said}"
        same_run(self.run("whole"), self.run(name))
        left = [
            path.name for path in self.run(name).iterdir() if path.name.startswith((".writing", ".deleting"))
        ]
        assert not left


@pytest.fixture(params=[False, True], ids=["at once", "in the background"])
def undisturbed(request: pytest.FixtureRequest, classifier: WriteRecipe, tmp_path: Path) -> Undisturbed:
    recipe = classifier(
        model="bert-dropout",
        save_steps=2,
        save_total_limit=1,
        eval_steps=2,
        load_best_model_at_end="true",
        metric_for_best_model="loss",
        num_train_epochs=2,
        logging_steps=3,
    )
    return Undisturbed(recipe, tmp_path, request.param)


def test_b051_killed_at_sampled_points(undisturbed: Undisturbed) -> None:
    assert undisturbed.num_changes > 60
    for number in random.Random(SEED).sample(range(1, undisturbed.num_changes), SAMPLE):
        undisturbed.kill_and_resume(number)


@pytest.mark.long
def test_b051_killed_at_every_point(undisturbed: Undisturbed) -> None:
    for number in range(1, undisturbed.num_changes + 1):
        undisturbed.kill_and_resume(number)
