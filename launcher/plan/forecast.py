"""The whole answer of `launcher plan`: what a recipe needs on a card, whether it fits, and what would."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.errors import CannotTell, Problem
from launcher.facts import Derived, Machine
from launcher.hardware import catalog
from launcher.hardware.catalog import Gpu
from launcher.hardware.limits import Limit, host_memory_bytes
from launcher.memory.breakdown import Term
from launcher.memory.disk import disk
from launcher.memory.host import host_memory
from launcher.memory.of_recipe import longest
from launcher.models.shape import ModelShape
from launcher.plan.candidates import candidates
from launcher.plan.choose import make_plan
from launcher.plan.duration import Duration, duration
from launcher.plan.fit import Judged, asked, fastest, judge, nearest
from launcher.plan.known_shape import shape_and_source
from launcher.plan.pretend import pretend_machine
from launcher.plan.prices import Price, price_of
from launcher.plan.records import Record, records
from launcher.plan.rows import Rows, rows_of
from launcher.plan.time_model import StepTime, step_time
from launcher.plan.turned import turned
from launcher.recipe.load import LoadedRecipe
from launcher.recipe.schema import Recipe

_NO_CARD = "no card is named: planned for this machine's CPU and main memory; --gpu CARD plans for a card"


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be planned, and what the person knows better: host memory, rows, prices."""

    loaded: LoadedRecipe
    host_bytes: int | None = None
    rows: int | None = None
    prices: Path | None = None
    ask_hub: bool = False


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The answer. `chosen` is what was asked where that fits, else the nearest that fits, else None.

    `typical` is a step at the rows' mean length, the full length where that is not known.
    `host_terms` and `disk_terms` are bytes of the whole machine. `host_is_given`: the limit is the
    planned machine's own, so that going over it is a verdict and not a remark.
    """

    name: str
    recipe: Recipe
    gpu: Gpu | None
    machine: Machine
    num_ranks: int
    usable_bytes: int
    config_source: str
    asked: Judged
    chosen: Judged | None
    fastest: Judged | None
    judged: tuple[Judged, ...]
    derived: tuple[Derived, ...]
    host_terms: tuple[Term, ...]
    host_limit: Limit
    host_is_given: bool
    disk_terms: tuple[Term, ...]
    rows: Rows
    typical: StepTime | None
    duration: Duration | None
    price: Price | None
    records: tuple[Record, ...]
    notices: tuple[str, ...]

    @property
    def shown(self) -> Judged:
        """What the bars show: the chosen plan, or what was asked where nothing fits."""
        return self.chosen or self.asked

    @property
    def host_bytes(self) -> int:
        """Host memory of all ranks together."""
        return sum(term.num_bytes for term in self.host_terms)

    @property
    def host_fits(self) -> bool:
        """False only where the planned machine's limit is known and too small."""
        return not self.host_is_given or self.host_bytes <= self.host_limit.amount

    @property
    def fits(self) -> bool:
        """Whether the recipe fits as asked."""
        return self.asked.fits and self.host_fits


def forecast(question: Question) -> Forecast:
    """Plan without a card, weights or a network. Raises CannotTell where too little is known."""
    loaded = question.loaded
    recipe, num_ranks = loaded.recipe, loaded.recipe.hardware.gpus
    gpu = _card(recipe)
    machine = pretend_machine(gpu.name if gpu else None, num_ranks)
    shape, source = shape_and_source(recipe, ask_hub=question.ask_hub)
    limit = _host_limit(question.host_bytes)
    usable = gpu.usable_bytes if gpu else limit.amount // num_ranks
    judged = _judged(recipe, shape, machine, num_ranks, gpu, usable)
    own = asked(judged)
    chosen = own if own.fits else nearest(judged)
    shown = chosen or own
    rows = _rows(question)
    typical = _typical(shown, gpu, rows)
    price = price_of(gpu, question.prices) if gpu else None
    planned = turned(recipe, shown.candidate.changes)
    return Forecast(
        name=loaded.name,
        recipe=recipe,
        gpu=gpu,
        machine=machine,
        num_ranks=num_ranks,
        usable_bytes=usable,
        config_source=source,
        asked=own,
        chosen=chosen,
        fastest=fastest(judged),
        judged=tuple(judged),
        derived=make_plan(
            planned, name=loaded.name, machine=machine, backend=shown.candidate.backend, num_ranks=num_ranks
        ).derived,
        host_terms=host_memory(shown.candidate.setting),
        host_limit=limit,
        host_is_given=question.host_bytes is not None or gpu is None,
        disk_terms=disk(shown.candidate.setting, planned.training),
        rows=rows,
        typical=typical,
        duration=duration(typical, recipe.training, rows, num_ranks=num_ranks, price=price)
        if typical
        else None,
        price=price,
        records=tuple(records(Path(recipe.output_dir).expanduser(), loaded.name, gpu.name if gpu else None)),
        notices=(*loaded.notices, *([] if gpu else [_NO_CARD])),
    )


def _card(recipe: Recipe) -> Gpu | None:
    """The named card; None for a CPU. Raises CannotTell where a card is wanted and none is named."""
    hardware = recipe.hardware
    if hardware.gpu is not None and hardware.device != "cpu":
        return catalog.get(hardware.gpu)
    if hardware.device == "cuda":
        raise CannotTell(
            Problem(
                where="hardware.gpu",
                what="the recipe wants a card and names none",
                right=f"one of: {', '.join(catalog.names())}",
                type="--gpu rtx3090",
            )
        )
    return None


def _host_limit(given: int | None) -> Limit:
    return host_memory_bytes() if given is None else Limit(amount=given, source="--host-memory")


def _judged(
    recipe: Recipe, shape: ModelShape, machine: Machine, num_ranks: int, gpu: Gpu | None, usable: int
) -> Sequence[Judged]:
    """Every candidate judged; farther ones only where none of the near ones fits."""
    near = [judge(each, gpu, usable) for each in candidates(recipe, shape, machine, num_ranks)]
    if any(each.fits for each in near):
        return near
    return [judge(each, gpu, usable) for each in candidates(recipe, shape, machine, num_ranks, far=True)]


def _typical(shown: Judged, gpu: Gpu | None, rows: Rows) -> StepTime | None:
    """Rows are mostly shorter than the longest that memory is planned for."""
    setting = shown.candidate.setting
    if gpu is None or rows.mean_tokens is None:
        return shown.time
    return step_time(replace(setting, seq_len=min(setting.seq_len, math.ceil(rows.mean_tokens))), gpu)


def _rows(question: Question) -> Rows:
    data = question.loaded.recipe.data
    if question.rows is not None:
        return Rows(num_rows=question.rows, mean_tokens=None, note=f"{question.rows:,} rows (--rows)")
    found = rows_of(Path(data.train_file), max_length=longest(data))
    if found.num_rows is None:
        return found
    kept = min(found.num_rows, data.max_train_rows or found.num_rows)
    kept -= round(kept * (data.eval_fraction or 0))
    return Rows(num_rows=kept, mean_tokens=found.mean_tokens, note=found.note)
