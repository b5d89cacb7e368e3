"""Layers over cards: the map without any card, and one device that says that nothing is spread."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from launcher.backends.model_parallel import ModelParallelOptions
from launcher.backends.model_parallel_torch import balanced_map, connect
from launcher.backends.options import BACKENDS
from launcher.errors import LaunchMismatch, RecipeError
from launcher.facts import RunArguments, Starter, StepSettings
from launcher.process.prepare import prepare
from launcher.recipe.load import load_recipe
from tests import tiny
from tests.backends.parts import connected
from tests.launching import RUN, losses, trained

ROOM = 2**30


def llama(**changes: object) -> nn.Module:
    sizes = {"hidden_size": 16, "num_hidden_layers": 6, "num_attention_heads": 2, "intermediate_size": 32}
    config = AutoConfig.for_model("llama", **(sizes | {"vocab_size": 40, "num_key_value_heads": 2} | changes))
    with torch.device("meta"):
        model: nn.Module = AutoModelForCausalLM.from_config(config)
    return model


def test_blocks_stay_whole_and_in_order_over_the_cards() -> None:
    found = balanced_map(llama(), {0: ROOM, 1: ROOM})
    layers = [found[f"model.layers.{index}"] for index in range(6)]  # a key each: no block is cut
    assert layers == sorted(layers)
    assert 2 <= layers.count(0) <= 4


def test_tied_weights_are_on_one_card() -> None:
    model = llama(tie_word_embeddings=True)
    found = balanced_map(model, {0: ROOM, 1: ROOM})
    assert found["lm_head"] == found["model.embed_tokens"]


def test_one_device_says_that_nothing_is_spread() -> None:
    ours = connect(connected(nn.Linear(5, 3)).parts)
    assert ours.check() == "model_parallel: one device (cpu): layers are not spread, nothing proven"


def test_several_ranks_are_refused() -> None:
    settings = StepSettings(global_batch_size=4, micro_batch_size=2, accumulation_steps=1, num_ranks=2)
    ours = connect(connected(nn.Linear(5, 3), settings=settings).parts)
    with pytest.raises(LaunchMismatch, match="one process"):
        ours.check()


def test_its_one_process_keeps_every_card(tmp_path: Path) -> None:
    variables = {"PATH": "/usr/bin", "TORCH_EXTENSIONS_DIR": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"}
    starter = Starter(name="accelerate", backend="model_parallel")
    lines = prepare(RunArguments(recipe="quickstart", backend="model_parallel"), starter, variables)
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert not any("GPUs used" in line for line in lines)


def test_the_backend_takes_one_process() -> None:
    backend = BACKENDS.get("model_parallel")
    assert (backend.max_ranks, backend.options) == (1, ModelParallelOptions)
    with pytest.raises(RecipeError, match="the cards in CUDA_VISIBLE_DEVICES"):
        load_recipe("quickstart", ["backend.name=model_parallel", "gpus=2"])


def test_a_run_on_one_device_warns_and_learns_as_one_process(tmp_path: Path) -> None:
    model, rows = tiny.write_bert(tmp_path / "bert"), tiny.write_csv(tmp_path / "train.csv", 24)
    recipe = tmp_path / "job.yaml"
    recipe.write_text(
        f"task: classification\nmodel: {{model_name_or_path: {model}}}\n"
        f"data: {{train_file: {rows}, max_length: 40}}\n"
        "training: {global_batch_size: 8, max_steps: 3, precision: fp32, logging_steps: 1}\n"
    )
    for name in ("single_gpu", "model_parallel"):
        words = ["--recipe", str(recipe), "--backend", name, "--name", name, "--output_dir", str(tmp_path)]
        said = trained([sys.executable, RUN, *words]).stderr
    assert "layers are not spread, nothing proven" in said
    assert "nothing of it is proven here" in said
    assert losses(tmp_path / "model_parallel") == losses(tmp_path / "single_gpu")
