"""The file for people who keep the Trainer: their TrainingArguments take it, and the values agree."""

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.backends.options import BACKENDS
from launcher.plan.compile import Compiled, Wanted, compile_recipe
from launcher.plan.write_files import write_files

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*deprecated:FutureWarning")
ON_CPU = ("device=cpu", "report_to=none", "output_dir=runs")


@pytest.fixture(autouse=True)
def without_what_fsdp_arguments_leave() -> Iterator[None]:
    """Building them writes into the environment (transformers 5.24)."""
    yield
    os.environ.pop("FSDP_CPU_RAM_EFFICIENT_LOADING", None)


def made(recipe: str, backend: str, out: Path, *overrides: str) -> tuple[Compiled, Any]:
    """The compiled run, and the TrainingArguments that its file gives."""
    gpus = BACKENDS.get(backend).max_ranks or 2
    wanted = Wanted(
        recipe=recipe, backend=backend, gpus=gpus, out=out, to="trainer", overrides=(*ON_CPU, *overrides)
    )
    compiled = compile_recipe(wanted)
    write_files(out, compiled.files, force=False)
    return compiled, runpy.run_path(str(out / "training_arguments.py"))["training_arguments"]()


@pytest.mark.parametrize("backend", BACKENDS.names())
def test_training_arguments_take_every_backends_file(backend: str, tmp_path: Path) -> None:
    compiled, arguments = made("bert_base_imdb_3090", backend, tmp_path, "seed=5", "precision=bf16")
    step = compiled.plan.step
    assert arguments.learning_rate == compiled.plan.learning_rate == pytest.approx(8e-5)
    assert arguments.per_device_train_batch_size == step.micro_batch_size
    assert arguments.gradient_accumulation_steps == step.accumulation_steps
    assert step.micro_batch_size * step.accumulation_steps * step.num_ranks == 32
    assert (arguments.bf16, arguments.fp16) == (True, False)
    assert arguments.lr_scheduler_type == "linear"
    assert (arguments.warmup_steps, arguments.seed, arguments.weight_decay) == (0.1, 5, 0.01)
    assert arguments.eval_steps == arguments.save_steps == pytest.approx(0.5 / 3)
    assert (arguments.metric_for_best_model, arguments.greater_is_better) == ("macro_f1", True)
    has_json = BACKENDS.get(backend).ds_config is not None
    assert arguments.deepspeed == (str(tmp_path / "ds.json") if has_json else None)
    assert bool(arguments.fsdp) is backend.startswith("fsdp")


def test_fsdp_keeps_its_version_its_blocks_and_its_own_checkpointing(tmp_path: Path) -> None:
    more = ("wrap_classes=[BertLayer, BertPooler]", "activation_checkpointing=true")
    _, arguments = made("bert_base_imdb_3090", "fsdp2_offload", tmp_path, *more)
    config = arguments.fsdp_config
    assert (config["version"], config["offload_params"], config["activation_checkpointing"]) == (
        2,
        True,
        True,
    )
    assert config["transformer_layer_cls_to_wrap"] == ["BertLayer", "BertPooler"]
    assert arguments.activation_checkpointing is False


def test_whole_steps_and_plain_checkpointing(tmp_path: Path) -> None:
    _, arguments = made("lora_7b_3090", "multi_gpu", tmp_path, "max_steps=30", "save_steps=160 rows")
    assert arguments.warmup_steps == 100
    assert arguments.fp16 is True
    assert arguments.max_steps == 30
    assert arguments.save_steps == 10
    assert arguments.activation_checkpointing_kwargs == {"use_reentrant": False}
    assert arguments.ddp_find_unused_parameters is False


def test_the_command_starts_ones_own_script(tmp_path: Path) -> None:
    compiled, _ = made("quickstart", "zero2", tmp_path)
    assert compiled.commands[0].endswith("accelerate.yaml train.py")
    assert "recipe.yaml" not in compiled.files
