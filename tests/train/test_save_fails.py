"""A disk that fails while a run saves: training goes on, what was whole stays, the next save tries again."""

import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launcher.train.checkpoint_files import newest_whole, steps_saved
from tests.train import forked
from tests.train.conftest import WriteRecipe
from tests.train.disks import fill, small_disk
from tests.train.test_resume import same_run

WAYS = pytest.mark.parametrize("way", ["false", "true"], ids=["at once", "in the background"])


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as place:
        yield place


@pytest.fixture
def recipe(classifier: WriteRecipe) -> Path:
    return classifier(save_steps=2, save_total_limit=2, max_steps=6)


def words(recipe: Path, runs: Path, way: str, *more: str) -> list[str]:
    return ["--recipe", str(recipe), "--output_dir", str(runs), f"async_save={way}", *more]


def at(moments: dict[tuple[str, str], Callable[[], object]]) -> Callable[[], None]:
    """Before an event (its name, a part of its path) for the first time, do something else to the disk."""

    def start() -> None:
        import sys

        left = dict(moments)

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            for (name, part), act in [*left.items()]:
                if event == name and part in str(arguments[0]):
                    del left[name, part]
                    act()

        sys.addaudithook(hook)

    return start


@WAYS
def test_a_full_disk_costs_one_checkpoint_and_nothing_else(
    recipe: Path, disk: Path, tmp_path: Path, way: str
) -> None:
    whole = forked.run(words(recipe, tmp_path / "whole", way), tmp_path / "log")
    assert whole.code == 0, whole.said
    filler = disk / "filler"
    moments = {
        ("os.mkdir", ".writing-checkpoint-4"): lambda: fill(disk),
        ("shutil.rmtree", ".writing-checkpoint-6"): filler.unlink,
    }
    done = forked.run(words(recipe, disk, way), tmp_path / "log", at(moments))
    assert done.code == 0, done.said
    run = disk / "job"
    assert "checkpoint-4 could not be saved: No space left on device" in done.said
    assert "are needed in" in done.said and "are free" in done.said and f"df -h {run}" in done.said
    assert "checkpoint-2 is kept" in done.said and "training goes on" in done.said
    assert steps_saved(run) == [2, 6] and not list(run.glob(".writing*"))
    same_run(tmp_path / "whole" / "job", run)


@WAYS
def test_a_disk_full_from_the_beginning_of_a_save_is_left_alone(
    recipe: Path, disk: Path, tmp_path: Path, way: str
) -> None:
    moments = {("os.rename", ".writing-checkpoint-2"): lambda: fill(disk)}
    done = forked.run(words(recipe, disk, way), tmp_path / "log", at(moments))
    assert done.code == 75, done.said
    assert "no space left on the disk" in done.said or "No space left on device" in done.said
    assert "the trained model could not be saved" in done.said
    run = disk / "job"
    (disk / "filler").unlink()
    again = forked.run(words(recipe, disk, way, "--resume"), tmp_path / "log")
    assert again.code == 0, again.said
    assert newest_whole(run)[0] == run / "checkpoint-6"


def test_a_last_save_that_fails_is_an_error_though_the_model_is_there(
    recipe: Path, disk: Path, tmp_path: Path
) -> None:
    filler = disk / "filler"
    moments = {
        ("os.mkdir", ".writing-checkpoint-6"): lambda: fill(disk),
        ("shutil.rmtree", ".writing-final"): filler.unlink,
    }
    done = forked.run(words(recipe, disk, "false"), tmp_path / "log", at(moments))
    assert done.code == 1, done.said
    assert "checkpoint-6 could not be saved" in done.said
    assert (
        "the trained model is in" in done.said and "checkpoint-4 is the newest whole checkpoint" in done.said
    )
    assert (disk / "job" / "final" / "launcher.json").exists()


def test_a_name_that_is_taken_costs_one_checkpoint(recipe: Path, disk: Path, tmp_path: Path) -> None:
    moments = {("os.mkdir", ".writing-checkpoint-4"): lambda: _swap(disk, "checkpoint-4")}
    done = forked.run(words(recipe, disk, "false"), tmp_path / "log", at(moments))
    assert done.code == 0, done.said
    assert "checkpoint-4 could not be saved" in done.said and "training goes on" in done.said
    assert steps_saved(disk / "job") == [2, 6]


def _swap(disk: Path, name: str) -> None:
    """Nothing can be made where a file has the folder's name."""
    path = disk / "job" / f".writing-{name}"
    shutil.rmtree(path, ignore_errors=True)
    path.touch()


def test_files_may_not_grow_beyond_the_shells_limit(recipe: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    moments = {("os.mkdir", ".writing-checkpoint-2"): limit}
    done = forked.run(words(recipe, tmp_path / "runs", "false"), tmp_path / "log", at(moments))
    assert done.code == 75, done.said
    assert "checkpoint-2 could not be saved: File too large" in done.said
    assert "ulimit -f unlimited" in done.said
    assert not list((tmp_path / "runs" / "job").glob("checkpoint-*"))


def test_the_best_checkpoint_that_could_not_be_saved_is_not_missed(
    classifier: WriteRecipe, disk: Path, tmp_path: Path
) -> None:
    recipe = classifier(
        save_steps=2,
        eval_steps=2,
        max_steps=6,
        learning_rate=0.5,  # gets worse after the first evaluation
        load_best_model_at_end="true",
        metric_for_best_model="loss",
    )
    filler = disk / "filler"
    moments = {
        ("os.mkdir", ".writing-checkpoint-2"): lambda: fill(disk),
        ("shutil.rmtree", ".writing-checkpoint-4"): filler.unlink,
    }
    done = forked.run(words(recipe, disk, "false"), tmp_path / "log", at(moments))
    assert done.code == 0, done.said
    assert "checkpoint-2, the best one, is not whole" in done.said


def test_a_disk_that_fills_up_is_told_before_the_save(recipe: Path, disk: Path, tmp_path: Path) -> None:
    moments = {("os.rename", ".writing-checkpoint-3"): lambda: fill(disk)}
    done = forked.run(words(recipe, disk, "false", "save_steps=3"), tmp_path / "log", at(moments))
    assert done.said.count("the next checkpoint takes") == 1, done.said


def test_a_continued_run_needs_no_room_for_what_it_has_already(
    classifier: WriteRecipe, tmp_path: Path
) -> None:
    """Three checkpoints and a model fit; the two that are kept do not count against the run twice."""
    recipe = classifier(save_steps=2, save_total_limit=2, max_steps=4)
    with small_disk(tmp_path / "disk", 64) as disk:
        assert forked.run(words(recipe, disk, "false"), tmp_path / "log").code == 0
        size = sum(path.stat().st_size for path in (disk / "job" / "checkpoint-4").iterdir())
        fill(disk, left_bytes=2 * size)
        done = forked.run(words(recipe, disk, "false", "max_steps=6", "--resume"), tmp_path / "log")
        assert done.code == 0, done.said
