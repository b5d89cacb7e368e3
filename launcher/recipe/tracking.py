"""The recipe's `tracking` section: what is shown of a run, and where metrics go besides `metrics.jsonl`."""

import importlib.util
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from launcher.errors import Problem
from launcher.options import Options

Tracker = Literal["tensorboard", "wandb", "swanlab", "trackio", "none"]
REMOTE = ("wandb", "swanlab", "trackio")


def _as_list(value: Any) -> Any:
    """One name stands for a list of one; on a command line several are typed with commas."""
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else value


class TrackingOptions(Options):
    """Who is told about a run, and how much."""

    report_to: Annotated[tuple[Tracker, ...], BeforeValidator(_as_list)] = Field(
        ("tensorboard",), description="Trackers besides metrics.jsonl; none: no other."
    )
    progress: Literal["auto", "bar", "lines", "quiet"] = Field(
        "auto",
        description="How steps are shown: a bar, a line each, or not; auto: a bar on a terminal, else lines.",
    )
    project: str = Field(
        "finetune-launcher", min_length=1, description="The project's name at wandb, swanlab and trackio."
    )
    tracker_mode: Literal["auto", "online", "offline"] = Field(
        "auto",
        description="Whether wandb and swanlab send at once; auto: where a key is set and the host answers.",
    )

    @property
    def remote(self) -> tuple[str, ...]:
        """The trackers that a package of their own connects to, each once."""
        return tuple(name for name in REMOTE if name in self.report_to)


def missing_trackers(options: TrackingOptions, where: str = "tracking.report_to") -> Iterator[Problem]:
    """Trackers whose package is not installed here; TensorBoard is told about when it is opened."""
    for name in options.remote:
        if importlib.util.find_spec(name) is None:
            yield Problem(
                where=where,
                what=f"{name} is not installed: it could not be told about the run",
                right="its package, or trackers that are there (metrics.jsonl is always written)",
                type=f"pip install {name}, or report_to=tensorboard",
            )
