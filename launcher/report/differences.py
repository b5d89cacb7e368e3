"""What runs do not have in common, and the whole of each one's configuration."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from launcher.report.figures import NONE
from launcher.report.markup import Safe, folded, join, table, tag
from launcher.report.reading import Run

_LONG = 300
# Of a plan and an environment: what differs anyway, or is said elsewhere.
_LEFT_OUT = (
    "plan.recipe_name",
    "plan.fingerprint",
    "plan.derived",
    "environment.starter",
    "environment.variables",
)


def configuration_section(runs: Sequence[Run]) -> Safe:
    """The keys whose values differ, then everything of each run."""
    parts = [_differences(runs)] if len(runs) > 1 else []
    return join([*parts, *(_whole(run) for run in runs)])


def _differences(runs: Sequence[Run]) -> Safe:
    flat = [_settings(run) for run in runs]
    keys = list(dict.fromkeys(key for each in flat for key in each))
    differing = [key for key in keys if len({each.get(key, NONE) for each in flat}) > 1]
    if not differing:
        return tag("p", "The runs have the same configuration in everything that was kept.")
    rows = [[key, *(each.get(key, NONE) for each in flat)] for key in differing]
    return table("Settings that differ", ["setting", *(run.label for run in runs)], rows)


def _settings(run: Run) -> dict[str, str]:
    """Recipe, plan and environment, one text a leaf."""
    found = (
        dict(_flat("", run.recipe))
        | dict(_flat("plan.", run.plan))
        | dict(_flat("environment.", run.environment))
    )
    return {key: value for key, value in found.items() if not key.startswith(_LEFT_OUT)}


def _flat(before: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(
                f"{before}{key}." if isinstance(inner, dict) and inner else f"{before}{key}", inner
            )
    elif not isinstance(value, dict):
        yield before, _written(value)


def _written(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONG else f"{text[:_LONG]} ... ({len(text)} characters)"


def _whole(run: Run) -> Safe:
    parts = [tag("h3", "Command"), tag("pre", run.command)] if run.command else []
    for title, data in (("Recipe", run.recipe), ("Plan", run.plan), ("Environment", run.environment)):
        rows = [[key, value] for key, value in _flat("", data)]
        if rows:
            parts.append(table(f"{title} of {run.label}", ["setting", "value"], rows))
    if not parts:
        return tag("p", f"{run.label}: no recipe.yaml, plan.json or environment.json is there.")
    return folded(f"Everything of {run.label}", *parts)
