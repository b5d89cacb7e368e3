"""Checkpoints that lack something or hold something else: refused with what is missing, never half loaded."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from launcher.errors import ResumeMismatch
from launcher.train.checkpoint_checks import check_names
from launcher.train.checkpoint_files import MANIFEST, entry
from launcher.train.shard_file import write_shard
from tests.launching import losses
from tests.train import forked
from tests.train.conftest import WriteRecipe

Tensors = dict[str, torch.Tensor]


def words(recipe: Path, name: str, *more: str) -> list[str]:
    return ["--recipe", str(recipe), "--name", name, *more]


def rewrite(checkpoint: Path, change: Callable[[Tensors], Tensors]) -> None:
    """Other tensors in the same checkpoint, its manifest made to fit."""
    manifest = json.loads((checkpoint / MANIFEST).read_text())
    for path in checkpoint.glob("*.safetensors"):
        held = load_file(path)
        path.unlink()
        write_shard(path, change(held))
        manifest["files"][path.name] = entry(path)
    (checkpoint / MANIFEST).write_text(json.dumps(manifest))


def without_moments(held: Tensors) -> Tensors:
    return {name: tensor for name, tensor in held.items() if name.endswith("/weight")}


def test_b050_what_is_missing_must_be_exactly_what_is_frozen() -> None:
    lora = {"model.q.lora_A", "model.q.lora_B"}
    check_names(lora, lora, Path("checkpoint-1"))
    with pytest.raises(ResumeMismatch, match=r"1 trained tensors are missing \(model.q.lora_B"):
        check_names(lora, lora - {"model.q.lora_B"}, Path("checkpoint-1"))
    with pytest.raises(ResumeMismatch, match=r"1 are trained no longer \(model.k"):
        check_names(lora, lora | {"model.k"}, Path("checkpoint-1"))


def test_b050_one_missing_adapter_tensor_is_refused(generator: WriteRecipe, tmp_path: Path) -> None:
    recipe = generator(save_steps=2, max_steps=2)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    gone: list[str] = []

    def drop_one(held: Tensors) -> Tensors:
        gone.append(sorted(held)[0].rpartition("/")[0])
        return {name: tensor for name, tensor in held.items() if not name.startswith(f"{gone[0]}/")}

    rewrite(run / "checkpoint-2", drop_one)
    refused = forked.run(words(recipe, "job", "max_steps=4", "--resume"), tmp_path / "log")
    assert refused.code == 1 and f"1 trained tensors are missing ({gone[0]}" in refused.said, refused.said
    assert "Traceback" not in refused.said


def test_b054_an_optimizer_does_not_start_anew_without_a_word(
    classifier: WriteRecipe, tmp_path: Path
) -> None:
    recipe = classifier(save_steps=2, max_steps=4)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    rewrite(run / "checkpoint-4", without_moments)
    refused = forked.run(words(recipe, "job", "max_steps=6", "--resume"), tmp_path / "log")
    assert refused.code == 1 and "no optimizer state for" in refused.said, refused.said
    assert "resume_weights_only=true" in refused.said
    more = ["max_steps=6", "--resume", "resume_weights_only=true"]
    done = forked.run(words(recipe, "job", *more), tmp_path / "log")
    assert done.code == 0 and "moments start anew" in done.said, done.said
    assert len(losses(run)) == 6
    # what it saved since counts its own updates: it goes on without the option
    again = forked.run(words(recipe, "job", "max_steps=8", "--resume"), tmp_path / "log")
    assert again.code == 0 and "at step 6" in again.said, again.said


def test_a_tensor_of_another_shape_is_refused(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(save_steps=2, max_steps=2)
    run = recipe.parent / "runs" / "job"
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    rewrite(run / "checkpoint-2", lambda held: {name: each.reshape(-1) for name, each in held.items()})
    refused = forked.run(words(recipe, "job", "max_steps=4", "--resume"), tmp_path / "log")
    assert refused.code == 1 and "tensors have another shape" in refused.said, refused.said


def test_b053_nothing_in_a_checkpoint_is_a_pickle(classifier: WriteRecipe, tmp_path: Path) -> None:
    recipe = classifier(model="bert-dropout", save_steps=2, max_steps=2, precision="fp16")
    assert forked.run(words(recipe, "job"), tmp_path / "log").code == 0
    files = list((recipe.parent / "runs" / "job" / "checkpoint-2").iterdir())
    assert {path.suffix for path in files} == {".safetensors", ".json", ""}
    assert "do not delete" in (recipe.parent / "runs" / "job" / "checkpoint-2" / "README").read_text()
    assert not any(path.read_bytes()[:2] in (b"\x80\x02", b"\x80\x04", b"PK") for path in files)
