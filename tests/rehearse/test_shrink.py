"""The small recipe trains the same way on less."""

from pathlib import Path

import pytest

from launcher.errors import HardwareError
from launcher.recipe import library
from launcher.recipe.batch import solve
from launcher.recipe.dump import to_yaml
from launcher.recipe.freezing import openings
from launcher.recipe.load import load_recipe
from launcher.recipe.schema import Recipe
from launcher.rehearse.rows import NUM_TRAIN
from launcher.rehearse.shrink import NUM_STEPS, Stage, precision_of, small_recipe
from launcher.rehearse.sizes import NUM_LAYERS


def _small(name: str, *overrides: str, gpus: int = 1, made_up: bool = False) -> tuple[Recipe, Recipe]:
    recipe = load_recipe(name, overrides, extra={"hardware.gpus": gpus}).recipe
    rows = {"train_file": Path("/w/train.csv"), "eval_file": Path("/w/eval.csv")} if made_up else {}
    stage = Stage(model=Path("/w/model"), runs=Path("/w/runs"), vocabulary_size=500, **rows)
    return recipe, small_recipe(recipe, stage)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_accumulation_stays_where_the_recipe_accumulates(gpus: int) -> None:
    _, small = _small("bert_base_imdb_3090", "training.global_batch_size=256", gpus=gpus)
    step = solve(small.training.global_batch_size, small.training.per_device_train_batch_size, gpus)  # type: ignore[arg-type]
    assert step.accumulation_steps > 1 and step.micro_batch_size > 1


def test_no_accumulation_is_invented() -> None:
    _, small = _small("quickstart", gpus=2)
    step = solve(small.training.global_batch_size, small.training.per_device_train_batch_size, 2)  # type: ignore[arg-type]
    assert (step.accumulation_steps, step.global_batch_size) == (1, 8)


def test_rate_is_the_real_batchs() -> None:
    recipe, small = _small("bert_base_imdb_3090")
    assert recipe.training.lr_scaling == "linear"
    assert small.training.learning_rate == pytest.approx(8e-5)
    assert small.training.lr_scaling == "none"


def test_warmup_in_steps_becomes_a_share_that_ends() -> None:
    recipe, small = _small("lora_7b_3090")
    assert recipe.training.warmup == 100
    assert 0 < small.training.warmup * NUM_STEPS < NUM_STEPS


@pytest.mark.parametrize(
    ("gpu", "asked", "precision"),
    [
        ("rtx3090", "auto", "bf16"),
        ("v100_16", "auto", "fp16"),
        ("t4", "fp32", "fp32"),
        ("a10", "fp16", "fp16"),
    ],
)
def test_precision_is_the_named_cards(gpu: str, asked: str, precision: str) -> None:
    recipe, small = _small("quickstart", f"hardware.gpu={gpu}", "device=cuda", f"training.precision={asked}")
    assert precision_of(recipe) == small.training.precision == precision


def test_precision_that_the_card_has_not_is_refused() -> None:
    with pytest.raises(HardwareError, match="no bf16 units"):
        _small("quickstart", "hardware.gpu=t4", "device=cuda", "training.precision=bf16")


def test_logits_are_still_chunked_with_a_small_vocabulary() -> None:
    recipe, small = _small("lora_7b_3090")
    assert small.training.loss_chunk_bytes is not None
    assert small.training.loss_chunk_bytes < 512 * 500 * 4


@pytest.mark.parametrize("name", library.names())
def test_every_shipped_recipe_shrinks_to_one_that_loads(name: str, tmp_path: Path) -> None:
    recipe, small = _small(name, made_up=True)
    file = tmp_path / f"{name}.yaml"
    file.write_text(to_yaml(small))
    assert load_recipe(str(file)).recipe == small
    kept = {"adapter", "backend", "task", "tracking"}
    assert recipe.model_dump(include=kept) == small.model_dump(include=kept)
    assert (small.hardware.device, small.training.seed) == ("cpu", recipe.training.seed)


def test_a_rehearsal_tells_no_tracker_outside_this_machine(tmp_path: Path) -> None:
    _, small = _small("quickstart", "report_to=[tensorboard, wandb]", made_up=True)
    assert small.tracking.report_to == ("tensorboard",)
    _, small = _small("quickstart", "report_to=swanlab", made_up=True)
    assert small.tracking.report_to == ("none",)


def test_every_phase_of_a_freezing_plan_is_reached_on_two_blocks() -> None:
    schedule = "freeze.schedule={0: head, 2: top 2 blocks, 4: blocks 18-23, 6: all}"
    recipe, small = _small("bert_base_imdb_3090", schedule, "freeze.modules=[embeddings, bottom 9 blocks]")
    per_epoch = -(-NUM_TRAIN // small.training.global_batch_size)
    starts = [round(epoch * per_epoch) for epoch, _ in small.freeze.epochs()]
    assert starts == sorted(set(starts)) and starts[0] == 0 and starts[-1] < NUM_STEPS
    names = [f"bert.encoder.layer.{index}.output.dense.weight" for index in range(NUM_LAYERS)]
    found = openings(small.freeze, ["bert.embeddings.word.weight", *names, "classifier.weight"]).at_epoch
    assert set(found) == {names[-1], "classifier.weight"}
    assert len(small.freeze.schedule) == len(recipe.freeze.schedule)
