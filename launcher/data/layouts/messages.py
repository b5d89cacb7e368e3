"""Conversations as lists of role and content, the form that chat templates take."""

from typing import Any

from launcher.data.layout import LAYOUTS, Layout, Role

COLUMNS = ("messages", "conversations", "conversation", "dialog", "chat")


def is_messages(value: Any) -> bool:
    """Whether a value is a list of {"role": ..., "content": ...}."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "role" in value[0]


LAYOUTS.register(
    "messages",
    Layout(
        name="messages",
        summary="a list of messages with role and content",
        task="causal_lm",
        roles=(
            Role(name="turns", aliases=COLUMNS, kind="turns", accepts=is_messages),
            Role(name="tools", kind="key", required=False),
        ),
        complete=(),
    ),
)
