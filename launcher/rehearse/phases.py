"""A freezing plan for a tiny model and a few steps: every phase is still there, over fewer blocks."""

import math
import re

from launcher.recipe.freezing import FreezeOptions, Parts
from launcher.rehearse.rows import NUM_TRAIN
from launcher.rehearse.sizes import NUM_LAYERS

_COUNTED = re.compile(r"(top|bottom) (\d+) ((?:block|layer)s?)")
_RANGE = re.compile(r"((?:block|layer)s?) (\d+)(?: ?- ?(\d+))?")


def small_freeze(options: FreezeOptions, *, num_steps: int, global_batch_size: int) -> FreezeOptions:
    """Phases spread over the rehearsal's steps; parts that count blocks count those that are there."""
    steps_per_epoch = math.ceil(NUM_TRAIN / global_batch_size)
    epochs = options.epochs()
    schedule = {
        f"{index * num_steps // len(epochs) / steps_per_epoch:g}": _parts(parts, most=NUM_LAYERS)
        for index, (_, parts) in enumerate(epochs)
    }
    modules = _parts(options.modules, most=NUM_LAYERS - 1)
    return options.model_copy(update={"modules": modules, "schedule": schedule})


def _parts(parts: Parts, *, most: int) -> Parts:
    return tuple(_part(part, most) for part in parts)


def _part(part: str, most: int) -> str:
    if found := _COUNTED.fullmatch(part):
        return f"{found.group(1)} {min(int(found.group(2)), most)} {found.group(3)}"
    if found := _RANGE.fullmatch(part):
        first, last = (min(int(found.group(place) or found.group(2)), NUM_LAYERS - 1) for place in (2, 3))
        return f"{found.group(1)} {first}-{last}"
    return part
