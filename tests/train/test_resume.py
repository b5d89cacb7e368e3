"""Stopped, killed, half written: a resumed run equals one that was never disturbed, bit for bit."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch

from tests.launching import metrics, weights
from tests.train import forked as in_forks
from tests.train.conftest import WriteRecipe
from tests.warm_runs import forked, trained_forked


def words(recipe: Path, name: str, *more: str) -> list[str]:
    return ["--recipe", str(recipe), "--name", name, *more]


def same_run(left: Path, right: Path) -> None:
    """Every logged number but times, every weight, bit for bit; each step once."""
    lines = []
    for run in (left, right):
        lines.append(
            [
                {key: line[key] for key in ("step", "loss", "grad_norm", "learning_rate")}
                for line in metrics(run)
                if "loss" in line
            ]
        )
        steps = [line["step"] for line in lines[-1]]
        assert steps == sorted(set(steps))
    assert lines[0] == lines[1]
    found = [weights(run / "final") for run in (left, right)]
    assert found[0].keys() == found[1].keys()
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


@pytest.mark.parametrize("backend", ["single_gpu", "multi_gpu", "zero2"])
def test_a_resumed_run_equals_an_undisturbed_one(backend: str, classifier: WriteRecipe) -> None:
    recipe = classifier(model="bert-dropout", save_steps=4, save_total_limit=9)
    runs = recipe.parent / "runs"
    trained_forked(backend, *words(recipe, "whole"))
    shutil.copytree(runs / "whole", runs / "cut")
    for name in (
        "final",
        "checkpoint-12",
        "checkpoint-15",
    ):  # the end is lost: the middle of an epoch is left
        shutil.rmtree(runs / "cut" / name)
    said = trained_forked(backend, *words(recipe, "cut", "--resume"))
    assert "resumed from" in said and "at step 8" in said
    same_run(runs / "whole", runs / "cut")


def test_ended_in_the_middle_of_anything_and_resumed(classifier: WriteRecipe, tmp_path: Path) -> None:
    """Between changes on the disk too: milliseconds after one of them. Right before each: the file beside."""
    recipe = classifier(model="bert-dropout", save_steps=1, save_total_limit=2)
    runs = recipe.parent / "runs"
    trained_forked("single_gpu", *words(recipe, "whole"))
    for change, after_s in ((20, 0.003), (12, 0.007), (30, 0.001)):
        moment = in_forks.ended_after(runs / "ended", change, after_s)
        ended = in_forks.run(words(recipe, "ended", "--resume"), tmp_path / "log", moment)
        assert ended.code == -signal.SIGALRM, ended.said
    trained_forked("single_gpu", *words(recipe, "ended", "--resume"))
    same_run(runs / "whole", runs / "ended")


def test_b051_a_checkpoint_that_is_not_whole_is_passed_over(classifier: WriteRecipe) -> None:
    recipe = classifier(save_steps=4, save_total_limit=9)
    run = recipe.parent / "runs" / "job"
    trained_forked("single_gpu", *words(recipe, "job"))
    shutil.rmtree(run / "final")
    state = run / "checkpoint-15" / "state-0000-0000.safetensors"
    state.write_bytes(state.read_bytes()[:-1] + b"x")
    (run / "checkpoint-12" / "manifest.json").unlink()
    said = trained_forked("single_gpu", *words(recipe, "job", "--resume"))
    assert "checkpoint-15 is not whole (state-0000-0000.safetensors has another content" in said
    assert "checkpoint-12 is not whole (manifest.json is missing)" in said
    assert "resumed from" in said and "at step 8" in said


def test_a_used_folder_is_neither_overwritten_nor_mixed(classifier: WriteRecipe) -> None:
    recipe = classifier(max_steps=2)
    run = recipe.parent / "runs" / "job"
    trained_forked("single_gpu", *words(recipe, "job"))
    before = (run / "metrics.jsonl").read_text()
    refused = forked("single_gpu", *words(recipe, "job"))
    assert refused.returncode == 2 and "--new" in refused.stderr and "Traceback" not in refused.stderr
    assert (run / "metrics.jsonl").read_text() == before
    trained_forked("single_gpu", *words(recipe, "job", "--new"))
    assert (recipe.parent / "runs" / "job.1" / "metrics.jsonl").read_text() == before


def test_a_changed_global_batch_is_refused_on_resume(classifier: WriteRecipe) -> None:
    recipe = classifier(max_steps=4, save_steps=2)
    trained_forked("single_gpu", *words(recipe, "job"))
    refused = forked("single_gpu", *words(recipe, "job", "--resume", "global_batch_size=6"))
    assert refused.returncode == 1 and "training.global_batch_size=12" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.long
def test_state_written_by_one_backend_is_read_by_the_others(classifier: WriteRecipe) -> None:
    recipe = classifier(save_steps=4, save_total_limit=9)  # no dropout: ranks do not matter
    runs = recipe.parent / "runs"
    trained_forked("single_gpu", *words(recipe, "whole"))
    wanted = [line["loss"] for line in metrics(runs / "whole") if "loss" in line]
    for writer, reader in (("zero2", "single_gpu"), ("single_gpu", "zero2"), ("multi_gpu", "zero2")):
        name = f"{writer}-{reader}"
        trained_forked(writer, *words(recipe, name))
        for part in ("final", "checkpoint-12", "checkpoint-15"):
            shutil.rmtree(runs / name / part)
        said = trained_forked(reader, *words(recipe, name, "--resume"))
        assert f"written by {writer}" in said
        found = [line["loss"] for line in metrics(runs / name) if "loss" in line]
        assert found == pytest.approx(wanted, abs=1e-5)


def test_manifest_names_backend_ranks_and_versions(classifier: WriteRecipe) -> None:
    recipe = classifier(max_steps=2, save_steps=2)
    trained_forked("multi_gpu", *words(recipe, "job"))
    manifest = json.loads((recipe.parent / "runs" / "job" / "checkpoint-2" / "manifest.json").read_text())
    assert (manifest["backend"], manifest["num_ranks"], manifest["step"]) == ("multi_gpu", 2, 2)
    assert manifest["versions"]["torch"] == torch.__version__
