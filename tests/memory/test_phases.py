"""Trained elements of every phase, from a configuration, against the real modules; and what they take."""

from typing import Any

import pytest

from launcher.memory.estimate import estimate
from launcher.memory.of_recipe import setting_of
from launcher.memory.phases import phase_counts, reached
from launcher.models.read_shape import shape_of
from launcher.recipe.freezing import FreezeOptions, openings
from launcher.recipe.schema import Recipe

SMALL = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
SCHEDULE = {"0": ["classifier", "pooler"], "1": "top 1 block", "2": "top 2 blocks", "3": "all"}
HEAD = {"0": "head", "1": "block 3", "2": "blocks", "3": "embeddings"}


def config_of(kind: str) -> dict[str, Any]:
    from transformers import AutoConfig

    own = {"gpt2": {"n_embd": 32, "n_layer": 4, "n_head": 4}}.get(kind, SMALL)
    found: dict[str, Any] = AutoConfig.for_model(kind, **own, vocab_size=100, pad_token_id=0).to_dict()
    return found


def real(kind: str, task: str, options: FreezeOptions) -> list[int]:
    """Elements open in each phase of the instantiated model."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

    auto = AutoModelForCausalLM if task == "causal_lm" else AutoModelForSequenceClassification
    with torch.device("meta"):
        model = auto.from_config(AutoConfig.for_model(**config_of(kind)))
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    at = openings(options, [*sizes]).at_epoch
    return [sum(sizes[name] for name, start in at.items() if start <= epoch) for epoch, _ in options.epochs()]


@pytest.mark.parametrize(
    ("kind", "task", "schedule"),
    [
        ("bert", "classification", SCHEDULE),
        ("roberta", "classification", SCHEDULE),
        ("llama", "causal_lm", HEAD),
        ("llama", "classification", HEAD),
        ("qwen2", "causal_lm", HEAD),
        ("gpt2", "causal_lm", HEAD),
    ],
)
def test_counts_are_those_of_the_real_model(kind: str, task: str, schedule: dict[str, Any]) -> None:
    options = FreezeOptions.model_validate({"schedule": schedule})
    shape = shape_of(config_of(kind), task=task)
    counted = phase_counts(options, shape)
    assert [each.trained_params for each in counted] == real(kind, task, options)
    assert counted[-1].trained_params == shape.num_params
    assert [each.graph_blocks for each in counted][:2] == [0, 1]


def test_linear_layers_are_counted_by_their_names() -> None:
    options = FreezeOptions.model_validate({"schedule": {"0": ["attention.self.query", "classifier"]}})
    shape = shape_of(config_of("bert"), task="classification")
    assert phase_counts(options, shape)[0].trained_params == real("bert", "classification", options)[0]


def test_a_name_that_only_the_model_knows_is_said() -> None:
    options = FreezeOptions.model_validate({"schedule": {"0": ["LayerNorm", "head"]}})
    found = phase_counts(options, shape_of(config_of("bert"), task="classification"))
    assert found[0].uncounted == ("LayerNorm",)


def recipe(**freeze: Any) -> Recipe:
    content = {
        "task": "classification",
        "model": {"model_name_or_path": "x"},
        "data": {"train_file": "rows.csv", "max_length": 128},
        "freeze": freeze,
        "training": {"num_train_epochs": 3},
    }
    return Recipe.model_validate(content)


def peak(**freeze: Any) -> int:
    setting = setting_of(
        recipe(**freeze),
        shape_of(config_of("bert"), task="classification"),
        backend="single_gpu",
        num_ranks=1,
        micro_batch=8,
        precision="fp32",
        weights_dtype="float32",
    )
    return estimate(setting).peak_bytes


def test_the_peak_is_that_of_the_largest_phase_that_is_reached() -> None:
    schedule = {"0": "head", "2": "top 2 blocks", "9": "all"}
    assert peak(modules=["embeddings", "blocks"]) < peak(schedule=schedule) < peak()
    assert peak(schedule=schedule) == peak(modules=["embeddings", "bottom 2 blocks"])
    counts = phase_counts(
        FreezeOptions.model_validate({"schedule": schedule}),
        shape_of(config_of("bert"), task="classification"),
    )
    assert [each.epoch for each in reached(counts, 3)] == [0, 2]
    assert len(reached(counts, None)) == 3
