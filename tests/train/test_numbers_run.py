"""Whole runs whose numbers break: poisoned weights, fp16 overflow, a loss of 0, half weights, masked rows."""

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import launcher.train.rank as rank
from launcher.errors import EXIT_FAILED, LauncherError, NonFinite, TrainError
from launcher.facts import Starter
from launcher.process.arguments import parse
from launcher.train.callbacks.movement import Movement
from launcher.train.job import Job
from tests.launching import metrics
from tests.train.conftest import WriteRecipe

Change = Callable[[dict[str, torch.Tensor]], None]
DENSE = "bert.encoder.layer.1.output.dense.weight"
MICRO_BATCHES = 4  # of a step of the classifier's recipe
WORDS = "bert.embeddings.word_embeddings.weight"


@pytest.fixture
def with_weights(material: Path, tmp_path: Path) -> Callable[[str, Change], Path]:
    """Makes a copy of a model whose file holds other weights."""

    def make(model: str, change: Change) -> Path:
        folder = tmp_path / f"changed-{model}"
        shutil.copytree(material / model, folder)
        file = folder / "model.safetensors"
        held = load_file(file)
        change(held)
        save_file(held, file, metadata={"format": "pt"})
        return folder

    return make


def run(recipe: Path, *words: str) -> tuple[Path, LauncherError | None]:
    """A rank's whole life in this process; its folder, and what ended it."""
    folder = recipe.parent / "runs" / recipe.stem
    try:
        rank.run_rank(parse(["--recipe", str(recipe), "--new", *words]), Starter(name="python"))
    except LauncherError as error:
        return folder, error
    return folder, None


def spoil(held: dict[str, torch.Tensor]) -> None:
    held[DENSE][3, 4] = torch.nan


def enlarge(held: dict[str, torch.Tensor]) -> None:
    held[DENSE] *= 3e5


def infinite_word(held: dict[str, torch.Tensor]) -> None:
    held[WORDS][6] = torch.inf


def test_poisoned_weights_end_the_run_with_the_module_and_the_rows(
    classifier: WriteRecipe, with_weights: Callable[[str, Change], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model = with_weights("bert", spoil)
    folder, error = run(classifier(save_steps=1), f"model_name_or_path={model}")
    assert isinstance(error, NonFinite) and error.exit_code == EXIT_FAILED
    said = capsys.readouterr().err
    assert "warning: 1 weights hold values that are not finite before the first step" in said
    assert "step 1: loss is not finite; weights left alone" in said  # at once, not at the next log line
    assert "first module whose output is not finite: model.bert.encoder.layer.1.output.dense (Linear)" in str(
        error
    )
    assert "its own weights not finite" in str(error) and "ANOTHER_COPY" in str(error)
    kept = json.loads((folder / "non_finite" / "step-9.json").read_text())
    first = kept["ranks"][0]["first"]
    assert first["module"].endswith("layer.1.output.dense") and first["dtype"] == "float32"
    assert not kept["ranks"][0]["parameters_of_first_are_finite"]
    assert kept["weights_not_finite"] == [f"model.{DENSE}"]
    assert len(kept["rows"]) == 12 and len(kept["last_steps"]) == 9
    assert all(row["text"].startswith("[CLS]") and row["token_ids"] for row in kept["texts"])


def test_b069_a_step_that_is_not_finite_is_logged_as_it_is(
    classifier: WriteRecipe, with_weights: Callable[[str, Change], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    model = with_weights("bert", infinite_word)
    folder, error = run(classifier(), f"model_name_or_path={model}", "max_skipped_steps=100")
    assert error is None
    lines = [line for line in metrics(folder) if "loss" in line]
    bad = [line["step"] for line in lines if line["loss"] is None]
    assert 0 < len(bad) < len(lines) == 15
    assert lines[-1]["skipped_steps"] == len(bad)
    assert lines[-1]["finite_fraction"] == pytest.approx(1 - len(bad) / 15, abs=1e-6)
    said = capsys.readouterr().err
    for step in bad:
        assert f"step {step}: loss is not finite" in said
        assert json.loads((folder / "non_finite" / f"step-{step}.json").read_text())["rows"]
    assert f"{len(bad)} of 15 steps were left out" in said


def test_the_row_with_the_bad_word_is_named(
    classifier: WriteRecipe, with_weights: Callable[[str, Change], Path]
) -> None:
    model = with_weights("bert", infinite_word)
    folder, error = run(classifier(), f"model_name_or_path={model}", "non_finite=stop")
    assert isinstance(error, NonFinite) and "non_finite is stop" in str(error)
    kept = json.loads(next((folder / "non_finite").iterdir()).read_text())
    seen = kept["ranks"][0]
    assert seen["first"]["module"] == "model.bert.embeddings.word_embeddings"
    texts = {row["row"]: row["token_ids"] for row in kept["texts"]}
    assert seen["bad_rows"] and all(6 in texts[row] for row in seen["bad_rows"])
    assert all(6 not in texts[row] for row in seen["rows"] if row not in seen["bad_rows"])


def test_b067_fp16_overflow_ends_the_run_with_scale_module_batch_and_advice(
    classifier: WriteRecipe, with_weights: Callable[[str, Change], Path]
) -> None:
    model = with_weights("bert", enlarge)
    folder, error = run(classifier(precision="fp16"), f"model_name_or_path={model}")
    assert isinstance(error, NonFinite)
    said = str(error)
    assert "9 steps in a row" in said and "output.dense (Linear), float16" in said
    assert "float16 ends at 65504" in said and "its own weights finite" in said
    assert said.index("training.precision=bf16") < said.index("training.precision=fp32")
    kept = json.loads((folder / "non_finite" / "step-9.json").read_text())
    assert [step["loss_scale"] for step in kept["last_steps"]] == [2.0 ** (16 - k) for k in range(1, 10)]
    assert kept["ranks"][0]["first"]["largest_in_fp32"] > 65504
    assert not (folder / "final").exists()


def test_b067_first_overflows_of_fp16_are_said_once_and_the_run_goes_on(
    classifier: WriteRecipe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import launcher.train.connected as connected

    scale = connected.LossScale
    monkeypatch.setattr(connected, "LossScale", lambda precision: scale(precision, initial=2.0**21))
    folder, error = run(classifier(precision="fp16"))
    assert error is None
    said = capsys.readouterr().err
    skipped = [line for line in metrics(folder) if "loss" in line][-1]["skipped_steps"]
    assert skipped >= 2 and said.count("Normal in the first fp16 steps") == 1
    assert "gradients are not finite" not in said and not (folder / "non_finite").exists()


def test_the_last_finite_checkpoint_is_kept_and_named(
    classifier: WriteRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison_from(monkeypatch, step=6)
    folder, error = run(classifier(save_steps=2, save_total_limit=1), "num_train_epochs=9")
    assert isinstance(error, NonFinite) and "checkpoint-4" in str(error)
    assert (folder / "checkpoint-4").is_dir()


def poison_from(monkeypatch: pytest.MonkeyPatch, *, step: int) -> None:
    """From that step (from 1) on a block's output is NaN in training, whatever the weights."""
    train = rank.train

    def spoilt(job: Job, *rest: Any) -> None:
        layer = job.module.base().bert.encoder.layer[0].output.dense
        forward, calls = layer.forward, 0

        def nan(*inputs: torch.Tensor) -> torch.Tensor:
            nonlocal calls
            calls += layer.training
            output: torch.Tensor = forward(*inputs)
            return output * torch.nan if layer.training and calls > MICRO_BATCHES * (step - 1) else output

        layer.forward = nan
        train(job, *rest)

    monkeypatch.setattr(rank, "train", spoilt)


def test_a_single_label_has_a_loss_of_zero_and_the_run_says_why(
    classifier: WriteRecipe, with_weights: Callable[[str, Change], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import launcher.train.connected as connected

    class Constant(connected.TrainModule):
        """Logits that no weight moves, so sure of themselves that the loss rounds to 0."""

        def _classify(self, inputs: Any, labels: Any) -> Any:
            loss, logits = super()._classify(inputs, labels)
            return loss * 0, logits

    monkeypatch.setattr(connected, "TrainModule", Constant)
    _, error = run(classifier())
    assert isinstance(error, TrainError) and not isinstance(error, NonFinite)
    assert "the loss has been exactly 0.0 for 8 steps" in str(error) and "no step ever had" in str(error)
    assert "every label masked" in str(error)


def test_pure_bf16_weights_stand_still_where_fp32_ones_move(classifier: WriteRecipe) -> None:
    """B073: at a rate of 6e-6 most bf16 weights round back to what they were."""
    fractions = {}
    for dtype in ("bfloat16", "float32"):
        fractions[dtype] = moved_fraction(classifier(precision="bf16"), dtype)
    assert fractions["bfloat16"] < 0.2 < 0.9 < fractions["float32"]


def moved_fraction(recipe: Path, dtype: str) -> float:
    """The part of the trained values that 10 steps change."""
    watched: list[Movement] = []
    make = rank.make_callbacks

    def with_movement(job: Job) -> list[Any]:
        watch = Movement(interval=10)
        if dtype == "float32":  # measured here for comparison; a run does not
            names = {name for name, _ in job.strategy.named_trainable()}
            watch.start = lambda job: watch.look_at(job, names)  # type: ignore[method-assign]
        watched.append(watch)
        return [each for each in make(job) if not isinstance(each, Movement)] + [watch]

    rank.make_callbacks = with_movement
    words = ["max_steps=20", "learning_rate=6e-6", "warmup=0", "lr_scheduler_type=constant"]
    try:
        _, error = run(recipe, f"model.dtype={dtype}", *words)
    finally:
        rank.make_callbacks = make
    assert error is None and watched[0].fraction is not None
    return watched[0].fraction


def test_b073_a_run_in_half_weights_is_told_the_fraction_and_the_price(
    classifier: WriteRecipe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import launcher.train.setup as setup

    monkeypatch.setattr(setup, "Movement", lambda: Movement(interval=5))
    folder, error = run(classifier(precision="bf16"), "model.dtype=bfloat16")
    assert error is None
    said = capsys.readouterr().err
    assert "of the bfloat16 weights changed in the last 5 steps" in said
    assert "more over all ranks (8 bytes a trained parameter)" in said
    fractions = [line["changed_fraction"] for line in metrics(folder) if "changed_fraction" in line]
    assert len(fractions) == 3 and all(0 <= each <= 1 for each in fractions)


def test_rows_without_a_trained_token_are_counted_and_all_of_them_refused(
    generator: WriteRecipe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mask_rows(monkeypatch, lambda count: slice(0, 5))
    _, error = run(generator(max_steps=3, global_batch_size=2, per_device_train_batch_size=2))
    assert error is None
    assert re.search(r"5 of \d+ training rows have no trained token", capsys.readouterr().err)
    mask_rows(monkeypatch, lambda count: slice(0, count))
    _, error = run(generator(max_steps=3))
    assert re.search(r"none of the \d+ training rows has a trained token", str(error))


def test_a_window_of_masked_rows_alone_is_said_and_is_no_error(
    generator: WriteRecipe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mask_rows(monkeypatch, lambda count: slice(0, 20))
    folder, error = run(generator(num_train_epochs=1, global_batch_size=1, per_device_train_batch_size=1))
    assert error is None
    said = capsys.readouterr().err
    assert said.count("none of its 1 rows has a trained token") == 1
    zeros = [line for line in metrics(folder) if line.get("loss") == 0.0]
    assert len(zeros) == 20 and all(math.isfinite(line["grad_norm"]) for line in zeros)


def mask_rows(monkeypatch: pytest.MonkeyPatch, which: Callable[[int], slice]) -> None:
    """Leave some rows without a trained token, as a cut that takes the whole answer does."""
    import launcher.train.setup as setup

    prepare = setup.prepare_data

    def masked(*args: Any, **kwargs: Any) -> Any:
        from dataclasses import replace

        from launcher.data.tokens import shifted_targets

        prepared = prepare(*args, **kwargs)
        store = prepared.store
        assert store.trained is not None
        trained = store.trained.copy()
        for row in range(len(store))[which(len(store))]:
            trained[store.offsets[row] : store.offsets[row + 1]] = False
        targets = shifted_targets(store.offsets, trained)
        return replace(prepared, store=replace(store, trained=trained, num_targets=targets))

    monkeypatch.setattr(setup, "prepare_data", masked)
