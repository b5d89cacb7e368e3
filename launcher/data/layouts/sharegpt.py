"""Conversations as lists of from and value (human, gpt, system, function_call, observation)."""

from typing import Any

from launcher.data.layout import LAYOUTS, Layout, Role
from launcher.data.layouts.messages import COLUMNS


def is_sharegpt(value: Any) -> bool:
    """Whether a value is a list of {"from": ..., "value": ...}."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "from" in value[0]


LAYOUTS.register(
    "sharegpt",
    Layout(
        name="sharegpt",
        summary="a list of turns with from and value",
        task="causal_lm",
        roles=(
            Role(name="turns", aliases=COLUMNS, kind="turns", accepts=is_sharegpt),
            Role(name="answer", kind="key", required=False),
            Role(name="tools", kind="key", required=False),
        ),
        complete=(),
    ),
)
