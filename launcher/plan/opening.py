"""The phases of a freezing plan beside the forecast: what trains from which epoch on, and what it takes."""

from dataclasses import dataclass, replace

from launcher.memory.estimate import estimate
from launcher.memory.of_recipe import freezing_phases
from launcher.memory.setting import Setting
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes


@dataclass(frozen=True, kw_only=True)
class Phase:
    """From `epoch` on: trained elements of the model, and the allocated peak of one rank in bytes."""

    epoch: float
    trained_params: int
    peak_bytes: int
    uncounted: tuple[str, ...]


def phases(recipe: Recipe, setting: Setting) -> list[Phase]:
    """Every phase that the run reaches, at the same cut of the batch; empty where nothing is frozen."""
    if setting.adapter is not None:
        return []
    found = []
    for each in freezing_phases(recipe, setting.shape):
        own = replace(setting, trained_params=each.trained_params, graph_blocks=each.graph_blocks)
        peak = estimate(own).peak_bytes
        found.append(
            Phase(
                epoch=each.epoch,
                trained_params=each.trained_params,
                peak_bytes=peak,
                uncounted=each.uncounted,
            )
        )
    return found


def phase_lines(recipe: Recipe, setting: Setting) -> list[str]:
    """The phases as a person reads them."""
    found, total = phases(recipe, setting), setting.shape.num_params
    lines = []
    for each in found:
        share = f"{each.trained_params:,} of {total:,} parameters train"
        lines.append(f"from epoch {each.epoch:g}: {share}, {format_bytes(each.peak_bytes)} at the peak")
    if found and (missed := list(dict.fromkeys(found[-1].uncounted))):
        lines.append(f"not counted before the model is there: {', '.join(missed)}")
    return lines
