"""Model shapes and settings for the tests of the memory estimate."""

from dataclasses import replace
from typing import Any

from launcher.facts import ShardingFacts
from launcher.memory.breakdown import Breakdown, Phase
from launcher.memory.setting import Adapter, Setting
from launcher.models.catalogue import config
from launcher.models.read_shape import shape_of
from launcher.models.shape import ModelShape

NOT_DIVIDED = ShardingFacts(optimizer_states=False, gradients=False, parameters=False)
ALL_DIVIDED = ShardingFacts(optimizer_states=True, gradients=True, parameters=True)


def shape(name: str, task: str = "causal_lm") -> ModelShape:
    found = config(name)
    assert found is not None, name
    return shape_of(found, task=task)


def mistral() -> ModelShape:
    return shape("mistralai/Mistral-7B-v0.1")


def attention_targets(model: ModelShape) -> tuple[str, ...]:
    return tuple(linear.name for linear in model.linears if linear.kind == "attention")


def lora(model: ModelShape, rank: int = 16, **changes: Any) -> Adapter:
    targets = attention_targets(model)
    beside = [linear for linear in model.linears if linear.name in targets]
    pairs = model.num_layers * sum(rank * (each.in_features + each.out_features) for each in beside)
    return replace(Adapter(method="lora", num_params=pairs, rank=rank, targets=targets), **changes)


def full(model: ModelShape, **changes: Any) -> Setting:
    """Full training as this launcher does it: fp32 weights under bf16 autocast."""
    made = Setting(
        shape=model,
        method="full",
        adapter=None,
        micro_batch=1,
        seq_len=512,
        weights_dtype="float32",
        sharding=NOT_DIVIDED,
    )
    return replace(made, **changes)


def with_lora(model: ModelShape, **changes: Any) -> Setting:
    """LoRA as this launcher does it: a frozen base in bf16, fp32 pairs."""
    return replace(full(model), method="lora", adapter=lora(model), weights_dtype="bfloat16", **changes)


def sharded(setting: Setting, kind: str = "fsdp2", num_ranks: int = 4, **changes: Any) -> Setting:
    divided: dict[str, Any] = {"sharding_kind": kind, "sharding": ALL_DIVIDED, "num_ranks": num_ranks}
    return replace(setting, **(divided | changes))


def phase(breakdown: Breakdown, name: str) -> Phase:
    return next(each for each in breakdown.phases if each.name == name)


def term(breakdown: Breakdown, phase_name: str, name: str) -> int:
    """Bytes of one line; 0 where it is not there."""
    return sum(each.num_bytes for each in phase(breakdown, phase_name).terms if each.name == name)
