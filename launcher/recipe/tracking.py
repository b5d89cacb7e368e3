"""The recipe's `tracking` section: where metrics go besides `metrics.jsonl`, which is always written."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from launcher.options import Options

Tracker = Literal["tensorboard", "none"]


def _as_list(value: Any) -> Any:
    """One name stands for a list of one."""
    return [value] if isinstance(value, str) else value


class TrackingOptions(Options):
    """Who else is told about metrics."""

    report_to: Annotated[tuple[Tracker, ...], BeforeValidator(_as_list)] = Field(
        ("tensorboard",), description="Trackers besides metrics.jsonl; none: no other."
    )
