"""Asked to stop, a run saves at the next step and can be continued as if nothing had been."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.train.checkpoint_files import newest_whole
from tests.train import forked
from tests.train.conftest import WriteRecipe
from tests.train.test_resume import same_run


def signals_at(*moments: tuple[str, str, int]) -> Callable[[], None]:
    """Send this process a signal before the first event of that name with that part in its path."""

    def start() -> None:
        left = [*moments]

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            if left and event == left[0][0] and left[0][1] in str(arguments[0]):
                os.kill(os.getpid(), left.pop(0)[2])

        sys.addaudithook(hook)

    return start


def words(recipe: Path, name: str, *more: str) -> list[str]:
    return ["--recipe", str(recipe), "--name", name, *more]


@pytest.mark.parametrize(
    ("number", "way"),
    [(signal.SIGTERM, "false"), (signal.SIGINT, "true"), (signal.SIGHUP, "false"), (signal.SIGTERM, "true")],
)
def test_a_signal_saves_and_the_run_can_be_continued(
    classifier: WriteRecipe, tmp_path: Path, number: int, way: str
) -> None:
    recipe = classifier(model="bert-dropout", save_steps=5, logging_steps=4, max_steps=12)
    runs = recipe.parent / "runs"
    whole = forked.run(words(recipe, "whole"), tmp_path / "log")
    assert whole.code == 0, whole.said
    # the save of step 5 is under way: the signal ends the run one step later, and that step is saved too
    asked = signals_at(("os.mkdir", ".writing-checkpoint-5", number))
    stopped = forked.run(words(recipe, "stopped", f"async_save={way}"), tmp_path / "log", asked)
    assert stopped.code == 75, stopped.said
    assert f"stopped by {signal.Signals(number).name}" in stopped.said and "nothing is lost" in stopped.said
    newest, passed = newest_whole(runs / "stopped")
    assert newest is not None and newest.name in ("checkpoint-5", "checkpoint-6") and not passed
    done = forked.run(words(recipe, "stopped", "--resume"), tmp_path / "log")
    assert done.code == 0, done.said
    same_run(runs / "whole", runs / "stopped")


def test_a_run_that_saves_nothing_saves_when_it_is_stopped(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(max_steps=12, eval_steps=3)
    asked = signals_at(("open", "metrics.jsonl", signal.SIGTERM))
    stopped = forked.run(words(recipe, "job"), tmp_path / "log", asked)
    assert stopped.code == 75, stopped.said
    run = recipe.parent / "runs" / "job"
    assert newest_whole(run)[0] is not None or "the last whole checkpoint is kept" in stopped.said


def test_before_the_first_step_a_signal_ends_the_run_at_once(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier()
    asked = signals_at(("open", "tokenizer", signal.SIGTERM))
    stopped = forked.run(words(recipe, "job"), tmp_path / "log", asked)
    assert stopped.code == 75 and "stopped by SIGTERM" in stopped.said
    assert not (recipe.parent / "runs" / "job").exists()


def test_a_signal_in_the_last_step_lets_the_run_finish(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(max_steps=4, save_steps=4)
    asked = signals_at(("os.mkdir", ".writing-checkpoint-4", signal.SIGTERM))
    done = forked.run(words(recipe, "job"), tmp_path / "log", asked)
    assert done.code == 0, done.said
    assert (recipe.parent / "runs" / "job" / "final" / "launcher.json").exists()
