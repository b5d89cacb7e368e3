"""The same fact given by hand in two places: agreement is silent, disagreement is one table.

A fact is a recipe key. Defaults never disagree with anybody, `auto` is silent, and values are
compared after normalising their types: "8" is 8. The starter owns the number of processes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from launcher.errors import Conflict, Problem
from launcher.facts import StepSettings
from launcher.options import Options

BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
OFFLOAD_BLOCKS = ("offload_optimizer", "offload_param")
_DS_FACTS = {
    "train_micro_batch_size_per_gpu": "training.per_device_train_batch_size",
    "gradient_clipping": "training.max_grad_norm",
    "optimizer.params.lr": "training.learning_rate",
    "optimizer.params.weight_decay": "training.weight_decay",
    "optimizer.params.eps": "training.adam_epsilon",
}


class HasKind(Protocol):
    """What is needed of an origin: whose word a value is."""

    @property
    def kind(self) -> str:
        """`default`, `recipe`, `parent`, `command line`, `starter` or `derived`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Given:
    """One fact as each side gave it by hand; None where that side is silent."""

    key: str
    recipe: Any = None
    file: Any = None
    command_line: Any = None

    def agrees(self) -> bool:
        """Whether all who spoke said the same."""
        spoken = [normal(value) for value in (self.recipe, self.file, self.command_line) if value is not None]
        return all(value == spoken[0] for value in spoken)


_HUGE = 2**1000  # no float holds whole numbers far above it


def normal(value: Any) -> Any:
    """A value without its spelling: numbers as floats, text in lower case."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value.strip().lower()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(value) if abs(value) < _HUGE else value


def settle(
    file: str, config: Mapping[str, Any], *, recipe: Options, origins: Mapping[str, HasKind], num_ranks: int
) -> dict[str, Any]:
    """The file's facts that nobody else gave, as recipe key to value, to load the recipe with.

    Raises Conflict with one table where a fact was given by hand on both sides, and differently.
    """
    facts = ds_facts(config, num_ranks) | backend_facts(config, recipe)
    values = flatten(recipe.model_dump())
    by_recipe = spoken(values, origins, "recipe", "parent")
    by_command = spoken(values, origins, "command line")
    require_agreement(file=file, file_facts=facts, recipe=by_recipe, command_line=by_command)
    return {key: value for key, value in facts.items() if key not in by_recipe | by_command}


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested sections as dotted keys: `{"training": {"seed": 1}}` is `training.seed`."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= flatten(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return flat


def ds_facts(config: Mapping[str, Any], num_ranks: int) -> dict[str, Any]:
    """The recipe's facts that a DeepSpeed JSON states by hand: recipe key to value, `auto` left out."""
    facts = {key: dig(config, path) for path, key in _DS_FACTS.items()}
    facts["training.global_batch_size"] = _global_batch(config, num_ranks)
    betas = dig(config, "optimizer.params.betas")
    if isinstance(betas, Sequence) and not isinstance(betas, str) and len(betas) == 2:
        facts |= {"training.adam_beta1": betas[0], "training.adam_beta2": betas[1]}
    facts["training.precision"] = _precision(config)
    return {key: value for key, value in facts.items() if value not in (None, "auto")}


def backend_facts(config: Mapping[str, Any], recipe: Options) -> dict[str, Any]:
    """What the JSON's zero_optimization says of the backend's own options: `backend.KEY` to value."""
    options: Options | None = getattr(recipe, "backend", None)
    if options is None:
        return {}
    facts = {name: dig(config, f"zero_optimization.{name}") for name in type(options).model_fields}
    stated = [dig(config, f"zero_optimization.{block}.nvme_path") for block in OFFLOAD_BLOCKS]
    places = [place for place in stated if place is not None]
    if "nvme_path" in facts and places and all(place == places[0] for place in places):
        facts["nvme_path"] = places[0]
    return {f"backend.{key}": value for key, value in facts.items() if value not in (None, "auto")}


def _global_batch(config: Mapping[str, Any], num_ranks: int) -> Any:
    """As stated, or micro batch x accumulation x ranks where only these two are stated."""
    stated, micro, accumulation = (config.get(key, "auto") for key in BATCH_KEYS)
    if stated != "auto":
        return stated
    if isinstance(normal(micro), float) and isinstance(normal(accumulation), float):
        product = normal(micro) * normal(accumulation) * num_ranks
        return int(product) if math.isfinite(product) else product
    return None


def _precision(config: Mapping[str, Any]) -> str | None:
    enabled = {block: normal(dig(config, f"{block}.enabled")) for block in ("bf16", "fp16")}
    for block, value in enabled.items():
        if value in (True, "true"):
            return block
    return "fp32" if all(value in (False, "false") for value in enabled.values()) else None


def dig(config: Any, path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    for name in path.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def spoken(values: Mapping[str, Any], origins: Mapping[str, HasKind], *kinds: str) -> dict[str, Any]:
    """Of a recipe's dotted values, those whose origin is one of `kinds`; `auto` is silence."""
    return {
        key: value
        for key, value in values.items()
        if key in origins and origins[key].kind in kinds and value not in (None, "auto")
    }


def require_agreement(
    *,
    file: str,
    file_facts: Mapping[str, Any],
    recipe: Mapping[str, Any],
    command_line: Mapping[str, Any],
) -> None:
    """Raises Conflict with one table when a fact given by hand twice differs."""
    keys = sorted({*file_facts, *command_line} & {*recipe, *command_line, *file_facts})
    rows = [
        # the command line is there to overrule the recipe; it cannot overrule a file it does not write
        Given(
            key=key,
            recipe=None if key in command_line else recipe.get(key),
            file=file_facts.get(key),
            command_line=command_line.get(key),
        )
        for key in keys
    ]
    wrong = [row for row in rows if not row.agrees()]
    if wrong:
        raise Conflict(_conflict(file, wrong))


def _conflict(file: str, rows: Sequence[Given]) -> Problem:
    first = rows[0]
    leaf = first.key.rsplit(".", 1)[-1]
    return Problem(
        where=file,
        what="the same fact was given twice by hand, and differently:\n" + table(rows),
        right='one owner per fact: the recipe; in the file write "auto", or remove the key',
        type=f'{leaf}={first.file}   (the file\'s value), or "auto" in {file}',
    )


def table(rows: Iterable[Given], headings: Sequence[str] = ("key", "recipe", "file", "command line")) -> str:
    """`key | recipe | file | command line`, in columns."""
    cells = [list(headings)]
    cells += [[row.key, *map(_cell, (row.recipe, row.file, row.command_line))] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(headings))]
    lines = ("  " + " | ".join(map(str.ljust, line, widths)).rstrip() for line in cells)
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)


def require_batch(file: str, config: Mapping[str, Any], step: StepSettings) -> None:
    """The file's three batch figures must multiply on the ranks that were started.

    Figures left `auto`, and figures equal to the plan's, are silent. Raises Conflict.
    """
    figures = (step.global_batch_size, step.micro_batch_size, step.accumulation_steps)
    planned = dict(zip(BATCH_KEYS, figures, strict=True))
    found = {key: config.get(key) for key in planned if config.get(key) not in (None, "auto")}
    if all(normal(value) == planned[key] for key, value in found.items()):
        return
    rows = [Given(key=key, recipe=planned[key], file=found.get(key)) for key in planned]
    raise Conflict(
        Problem(
            where=file,
            what=f"{_sum(found, step.num_ranks)}:\n" + table(rows, ("key", "plan", "file", "command line")),
            right=f"{step.global_batch_size} = {step.micro_batch_size} x {step.accumulation_steps} "
            f"x {step.num_ranks} ranks, as planned from the recipe",
            type=f'"auto" for the three in {file}, or start as many processes as it was written for',
        )
    )


def _sum(found: Mapping[str, Any], num_ranks: int) -> str:
    """`train_batch_size 64 != 4 x 8 x 1`, with `auto` where the file is silent."""
    total, micro, accumulation = (found.get(key, "auto") for key in BATCH_KEYS)
    return (
        f"train_batch_size {total} != {micro} x {accumulation} x {num_ranks} (micro x accumulation x ranks)"
    )
