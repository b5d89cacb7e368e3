"""A finished run, continued: nothing to do, or more steps; and runs that end early."""

import json
import shutil
from pathlib import Path

from launcher.train.checkpoint_files import newest_whole, steps_saved
from tests.launching import metrics
from tests.train import forked
from tests.train.conftest import WriteRecipe
from tests.train.test_resume import same_run


def words(recipe: Path, name: str, *more: str) -> list[str]:
    return ["--recipe", str(recipe), "--name", name, *more]


def test_a_finished_run_says_so_and_keeps_its_model(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(max_steps=4, save_steps=2)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    again = forked.run(words(recipe, "job", "--resume"), tmp_path / "log")
    assert again.code == 0 and "this run is finished" in again.said
    same = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    before.pop(run / ".owner"), same.pop(run / ".owner")
    assert same == before


def test_a_finished_run_goes_on_to_more_steps(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(max_steps=4, save_steps=2, lr_scheduler_type="constant", warmup=0)
    runs = recipe.parent / "runs"
    assert forked.run(words(recipe, "whole", "max_steps=8"), tmp_path / "log").code == 0
    assert forked.run(words(recipe, "longer"), tmp_path / "log").code == 0
    more = forked.run(words(recipe, "longer", "max_steps=8", "--resume"), tmp_path / "log")
    assert more.code == 0 and "at step 4" in more.said, more.said
    same_run(runs / "whole", runs / "longer")


def test_a_finished_run_without_checkpoints_stays(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(max_steps=2)
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    refused = forked.run(words(recipe, "job", "max_steps=4", "--resume"), tmp_path / "log")
    assert refused.code == 1 and "it has no whole checkpoint" in refused.said and "--new" in refused.said
    again = forked.run(words(recipe, "job", "--resume"), tmp_path / "log")
    assert again.code == 0 and "this run is finished" in again.said


def test_killed_between_the_last_save_and_the_model(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(max_steps=4, save_steps=2)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    quality = json.loads((run / "summary.json").read_text())["quality"]
    lines = metrics(run)
    (run / "summary.json").unlink()
    shutil.rmtree(run / "final")
    done = forked.run(words(recipe, "job", "--resume"), tmp_path / "log")
    assert done.code == 0, done.said
    found = json.loads((run / "summary.json").read_text())["quality"]
    assert found["loss"] == quality["loss"] and metrics(run) == lines


def test_resume_from_an_earlier_checkpoint_leaves_the_other_way_aside(
    classifier: WriteRecipe, tmp_path: Path
) -> None:
    recipe = classifier(max_steps=6, save_steps=2, save_total_limit=9)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    back = words(recipe, "job", "--resume", str(run / "checkpoint-2"), "max_steps=4", "learning_rate=1e-4")
    done = forked.run(back, tmp_path / "log")
    assert done.code == 0 and "superseded-checkpoint-6" in done.said, done.said
    assert steps_saved(run) == [2, 4] and newest_whole(run)[0] == run / "checkpoint-4"


def test_a_run_folder_given_as_a_checkpoint_means_its_newest_whole_one(
    classifier: WriteRecipe, tmp_path: Path
) -> None:
    recipe = classifier(max_steps=4, save_steps=2)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    done = forked.run(words(recipe, "other", "--resume", str(run), "max_steps=6"), tmp_path / "log")
    assert done.code == 0 and "checkpoint-4 at step 4" in done.said, done.said


def test_evaluations_without_a_better_one_end_the_run(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(
        eval_steps=1,
        save_steps=2,
        early_stopping_patience=3,
        metric_for_best_model="loss",
        learning_rate=0.5,
        warmup=0,
        num_train_epochs=8,
    )
    runs = recipe.parent / "runs"
    done = forked.run(words(recipe, "whole"), tmp_path / "log")
    assert done.code == 0 and "stops early at step" in done.said, done.said
    curve = {line["step"]: line["eval_loss"] for line in metrics(runs / "whole") if "eval_loss" in line}
    best = min(curve, key=lambda step: curve[step])
    last = max(curve)
    assert last == best + 3 < 40
    assert last in steps_saved(runs / "whole")
    again = forked.run(words(recipe, "whole", "--resume"), tmp_path / "log")
    assert again.code == 0 and "this run is finished" in again.said
    # the count is part of the checkpoint: cut in the middle of it, the run ends at the same step
    shutil.copytree(runs / "whole", runs / "cut")
    for name in ("final", f"checkpoint-{last}"):
        shutil.rmtree(runs / "cut" / name)
    (runs / "cut" / "summary.json").unlink()
    more = forked.run(words(recipe, "cut", "--resume"), tmp_path / "log")
    assert more.code == 0 and f"stops early at step {last}" in more.said, more.said
    same_run(runs / "whole", runs / "cut")
