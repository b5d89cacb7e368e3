"""From a model's configuration, as in its config.json, to its shape. No torch, no weights, no network."""

from collections.abc import Callable, Mapping
from typing import Any

from launcher.errors import CannotTell, Problem
from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.architectures.defaults import defaults
from launcher.models.architectures.table import READERS, REFUSED
from launcher.models.shape import ModelShape
from launcher.registry import load_attribute

_EXPERT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
_TYPE = "launcher plan RECIPE --trace"
_TRACE = "a trace of the real model, which needs no knowledge of its architecture"


def shape_of(config: Mapping[str, Any], *, task: str = "causal_lm", num_labels: int = 2) -> ModelShape:
    """The shape of the model that the configuration describes, with the head of `task`.

    Raises CannotTell for an architecture that is not known here, for one that has no head for the task,
    and for a configuration that lacks a size.
    """
    assert task in ("causal_lm", "classification"), task
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in REFUSED:
        raise _refused(model_type, REFUSED[model_type])
    if not isinstance(model_type, str) or model_type not in READERS:
        if num_experts := _num_experts(config):
            raise _refused(str(model_type), f"routes tokens to {num_experts} experts")
        raise _unknown(model_type)
    facts = ConfigFacts(model_type=model_type, values=config, defaults=defaults(model_type))
    read: Callable[[ConfigFacts, str, int], ModelShape] = load_attribute(READERS[model_type])
    return read(facts, task, num_labels)


def require_dense(shape: ModelShape) -> ModelShape:
    """The shape itself. Raises CannotTell for a mixture of experts: counted, its memory not known.

    What an expert saves for the backward pass depends on how many tokens are routed to it.
    """
    if shape.num_experts:
        raise _refused(shape.model_type, f"routes tokens to {shape.num_experts} experts")
    return shape


def known_types() -> list[str]:
    """Every `model_type` whose shape can be read."""
    return sorted(READERS)


def _dense_types() -> list[str]:
    return [name for name in known_types() if name != "mixtral"]


def _num_experts(config: Mapping[str, Any]) -> int:
    found = [config.get(key) for key in _EXPERT_KEYS]
    return max((count for count in found if isinstance(count, int) and count > 1), default=0)


def _refused(model_type: str, reason: str) -> CannotTell:
    return CannotTell(
        Problem(
            where="config.json: model_type",
            what=f"a {model_type} model {reason}: its memory is not computed here",
            right=f"a model without experts, of one of: {', '.join(_dense_types())}; or {_TRACE}",
            type=_TYPE,
        )
    )


def _unknown(model_type: Any) -> CannotTell:
    said = "names no model_type" if model_type is None else f"says model_type {model_type!r}"
    return CannotTell(
        Problem(
            where="config.json: model_type",
            what=f"the configuration {said}, whose layers are not known here",
            right=f"one of: {', '.join(known_types())}; or {_TRACE}",
            type=_TYPE,
        )
    )
