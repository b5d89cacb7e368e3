"""The recipe's `freeze` section: what of a fully trained model stays as it is, and what opens when.

Parts are words and names that `adapters/open_parts` resolves. A schedule opens parts at epochs and never
closes them again: `{0: [classifier, pooler], 2: top 2 blocks, 4: top 4 blocks}`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from launcher.adapters.open_parts import form_problem, resolve
from launcher.errors import BadValue, Problem
from launcher.options import Options

MODULES, SCHEDULE = "freeze.modules", "freeze.schedule"


def _listed(value: Any) -> Any:
    """`head` is `[head]`."""
    return (value,) if isinstance(value, str) else value


Parts = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class FreezeOptions(Options):
    """Nothing is frozen where nothing is said."""

    modules: Parts = Field(
        (), description="What never trains: embeddings, head, top 2 blocks, blocks 0-7, a name or a glob."
    )
    schedule: dict[str, Parts] = Field(
        default_factory=dict,
        description="What opens at which epoch, 0 first: {0: [classifier, pooler], 2: top 2 blocks, 4: all}.",
    )

    @property
    def is_used(self) -> bool:
        """Whether something is frozen, for a while or for good."""
        return bool(self.modules or self.schedule)

    def epochs(self) -> list[tuple[float, Parts]]:
        """The schedule in the order of epochs. Call after `problems` has found none."""
        return sorted((float(epoch), parts) for epoch, parts in self.schedule.items())


@dataclass(frozen=True, kw_only=True)
class Openings:
    """The epoch at which each parameter opens, those that never do left out; lines for the person."""

    at_epoch: Mapping[str, float]
    notices: tuple[str, ...] = ()


def openings(options: FreezeOptions, names: Sequence[str]) -> Openings:
    """Resolve the section on a model's parameters.

    Raises BadValue for a part that names nothing here, and where nothing would train.
    """
    closed = resolve(options.modules, names, where=MODULES)
    notices = [*closed.notices]
    found: dict[str, float] = {}
    for epoch, parts in options.epochs() or [(0.0, ("all",))]:
        opened = resolve(parts, names, where=f"{SCHEDULE}.{epoch:g}")
        fresh = [name for name in names if name in opened.names - closed.names and name not in found]
        notices += opened.notices
        if not fresh:
            notices.append(f"{SCHEDULE}.{epoch:g}: opens nothing that was not open or frozen for good")
        found |= dict.fromkeys(fresh, epoch)
    if not any(epoch == 0 for epoch in found.values()):
        raise _nothing_trains(options)
    return Openings(at_epoch=found, notices=tuple(notices))


def _nothing_trains(options: FreezeOptions) -> BadValue:
    where = f"{SCHEDULE}.0" if options.schedule else MODULES
    return BadValue(
        Problem(
            where=where,
            what="nothing of the model would train from the start",
            right="at least the head open at epoch 0",
            type=f"{SCHEDULE}.0: head" if options.schedule else f"{MODULES}: [embeddings, blocks]",
        )
    )


def opening_steps(
    at_epoch: Mapping[str, float], *, steps_per_epoch: int, total_steps: int
) -> tuple[dict[str, int], list[str]]:
    """The global step before which each parameter opens; what the run's end precedes is left out and told."""
    found, late = {}, set()
    for name, epoch in at_epoch.items():
        step = round(epoch * steps_per_epoch)
        if step < total_steps:
            found[name] = step
        else:
            late.add(epoch)
    ends = total_steps / steps_per_epoch
    lines = [f"{SCHEDULE}.{each:g}: never reached, the run ends at epoch {ends:g}" for each in sorted(late)]
    return found, lines


def problems(options: FreezeOptions) -> Iterator[tuple[str, Problem]]:
    """What can be told without a model, each with the key that it is about."""
    for part in options.modules:
        if found := form_problem(part, MODULES):
            yield MODULES, found
    for epoch, parts in options.schedule.items():
        key = f"{SCHEDULE}.{epoch}"
        if not _is_epoch(epoch):
            yield key, _no_epoch(epoch, key)
        if not parts:
            yield key, Problem(where=key, what="opens nothing", right="a part", type=f"{key}: head")
        for part in parts:
            if found := form_problem(part, key):
                yield key, found
    if options.schedule and not any(_is_epoch(each) and float(each) == 0 for each in options.schedule):
        yield (
            SCHEDULE,
            Problem(
                where=SCHEDULE,
                what="nothing opens at epoch 0",
                right="what trains from the start under 0",
                type="schedule: {0: head, 2: top 2 blocks}",
            ),
        )


def _is_epoch(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False


def _no_epoch(text: str, key: str) -> Problem:
    return Problem(
        where=key,
        what=f"'{text}' is no epoch",
        right="epochs counted from 0, such as 0, 2 or 0.5",
        type="schedule: {0: head, 2: top 2 blocks}",
    )
