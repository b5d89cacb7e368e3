"""Each part of the closed form switched on alone: the trace's phase changes by as many bytes."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from launcher.adapters.count import count
from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.setting import Adapter, Setting
from launcher.memory.trace import DepthTrace, breakdown
from launcher.memory.trace_request import request_of
from launcher.models.read_shape import shape_of

LAYERS = 3
LLAMA: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 256, "num_hidden_layers": LAYERS, "num_attention_heads": 8},
    **{"num_key_value_heads": 4, "intermediate_size": 704, "vocab_size": 4096},
    **{"max_position_embeddings": 512, "tie_word_embeddings": False},
}
BERT: dict[str, Any] = {
    **{"model_type": "bert", "hidden_size": 256, "num_hidden_layers": LAYERS, "num_attention_heads": 8},
    **{"intermediate_size": 1024, "vocab_size": 4096, "max_position_embeddings": 512},
}
CONFIGS = {"llama": LLAMA, "bert": BERT, "bert without dropout": BERT | dict.fromkeys(
    ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0
)}  # fmt: skip


def setting_of(model: str, **changes: Any) -> Setting:
    """This launcher's own step on a small model; `method` and `ranks` bring what belongs to them."""
    config = CONFIGS[model]
    shape = shape_of(config, task="classification" if config["model_type"] == "bert" else "causal_lm")
    method, ranks = changes.pop("method", "full"), changes.pop("ranks", 1)
    backend = "single_gpu" if ranks == 1 else "fsdp2"
    found = Setting(
        shape=shape,
        method=method,
        adapter=None if method == "full" else _adapter(method, config),
        micro_batch=4,
        seq_len=256,
        weights_dtype="float32",
        checkpointing="none",
        backend=backend,
        sharding_kind="none" if ranks == 1 else "fsdp2",
        sharding=BACKENDS.get(backend).sharding,
        num_ranks=ranks,
        repeats_kv=False,
    )
    return replace(found, **changes)


def _adapter(method: str, config: dict[str, Any]) -> Adapter:
    shape = shape_of(config, task="classification" if config["model_type"] == "bert" else "causal_lm")
    found = count(METHODS.get(method).options(method=method), shape)
    return Adapter(
        method=method,
        num_params=found.num_params,
        rank=found.rank,
        targets=found.targets,
        virtual_tokens=found.virtual_tokens,
        head_copy_params=found.head_copy_params,
    )


@cache
def traced(model: str, changes: tuple[tuple[str, Any], ...]) -> Breakdown:
    """In this process, at the model's own depth."""
    from launcher.memory.trace_torch import record, summary

    setting = setting_of(model, **dict(changes))
    options = METHODS.get(setting.method).options(method=setting.method).model_dump()
    request = request_of(setting, CONFIGS[model], adapter=options)
    log, layers = record(request)
    return breakdown(request, [DepthTrace(**summary(log, layers))], LAYERS)


def _phase(found: Breakdown, name: str) -> int:
    return next(phase.num_bytes for phase in found.phases if phase.name == name)


SWITCHES: list[tuple[str, str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ("saved activations", "llama", {}, {"micro_batch": 8}, ("forward", "backward")),
    ("checkpoints", "llama", {"checkpointing": "full"}, {"micro_batch": 8}, ("forward", "backward")),
    ("recomputed activations", "llama", {}, {"checkpointing": "full"}, ("forward", "backward")),
    ("autocast", "llama", {"precision": "fp32"}, {"precision": "bf16"}, ("forward", "backward")),
    ("probabilities", "llama", {}, {"attention": "eager"}, ("forward", "backward")),
    ("kept gradients", "llama", {}, {"accumulation_steps": 2}, ("forward",)),
    ("foreach temporary", "llama", {}, {"optimizer": "adamw_foreach"}, ("optimizer",)),
    ("chunked loss", "llama", {}, {"loss": "chunked", "loss_chunk_tokens": 64}, ("forward",)),
    ("frozen weights", "llama", {}, {"method": "lora"}, ("load", "forward", "optimizer", "save")),
    ("half weights", "llama", {"method": "lora"}, {"weights_dtype": "bfloat16"}, ("load", "optimizer")),
    ("packed weights", "llama", {"method": "lora", "weights_dtype": "bfloat16"}, {"quantisation": "nf4"},
     ("load", "optimizer")),
    ("evaluation logits", "llama", {}, {"eval_batch": 16}, ("evaluate",)),
    ("divided states", "llama", {}, {"ranks": 4}, ("load", "optimizer")),
    ("gathered units", "llama", {}, {"ranks": 4}, ("forward", "backward", "evaluate")),
    ("gathered frozen units", "llama", {"method": "lora"}, {"ranks": 4}, ("forward", "evaluate", "load")),
    ("post-norm activations", "bert", {}, {"micro_batch": 8}, ("forward", "backward", "evaluate")),
    ("post-norm recomputed", "bert", {"checkpointing": "full"}, {"micro_batch": 8}, ("forward", "backward")),
    ("post-norm adapters", "bert", {"checkpointing": "full"}, {"method": "lora"}, ("forward", "backward")),
    ("embeddings as a unit", "bert", {"checkpointing": "full"}, {"ranks": 4},
     ("forward", "backward", "evaluate")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "base", "switch", "phases"), [each[1:] for each in SWITCHES], ids=[each[0] for each in SWITCHES]
)
def test_a_term_switched_on_alone_changes_the_trace_as_much(
    model: str, base: dict[str, Any], switch: dict[str, Any], phases: tuple[str, ...]
) -> None:
    """Within 3 % of the phase, or 5 % of the change itself."""
    on = base | switch
    truth = [traced(model, tuple(sorted(each.items()))) for each in (base, on)]
    guess = [estimate(setting_of(model, **each)) for each in (base, on)]
    for name in phases:
        real = _phase(truth[1], name) - _phase(truth[0], name)
        ours = _phase(guess[1], name) - _phase(guess[0], name)
        assert real != 0, name
        slack = max(0.05 * abs(real), 0.03 * _phase(truth[1], name))
        assert ours == pytest.approx(real, abs=slack), (name, real, ours)


def test_dropout_alone() -> None:
    """A byte an element for each mask of a block and of the embeddings."""
    with_masks, without = (_phase(traced(model, ()), "forward") for model in ("bert", "bert without dropout"))
    ours = [_phase(estimate(setting_of(model)), "forward") for model in ("bert", "bert without dropout")]
    assert with_masks > without
    assert ours[0] - ours[1] == pytest.approx(with_masks - without, rel=0.1)
