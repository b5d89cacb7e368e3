"""Room on the run folder's disk for the whole run, asked before anything is downloaded. No torch."""

from pathlib import Path

from launcher.errors import DoesNotFit, Problem
from launcher.hardware.free_space import free_bytes
from launcher.memory.disk import disk
from launcher.memory.of_recipe import setting_of
from launcher.plan.known_shape import known_shape
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes


def require_room(recipe: Recipe, name: str) -> str:
    """A line that says what the run will write. Raises DoesNotFit where its disk is too small."""
    folder = Path(recipe.output_dir).expanduser() / name
    shape = known_shape(recipe)
    if shape is None:
        return f"disk: what the run will write to {folder} is not known before its model is here"
    setting = setting_of(
        recipe,
        shape,
        backend=recipe.backend.name,
        num_ranks=1,
        micro_batch=1,
        precision="bf16",
        weights_dtype="bfloat16",
    )
    terms = disk(setting, recipe.training)
    needed = sum(term.num_bytes for term in terms)
    free = free_bytes(folder)
    parts = ", ".join(f"{term.name} {format_bytes(term.num_bytes)}" for term in terms)
    if needed > free:
        raise DoesNotFit(
            Problem(
                where=str(folder),
                what=f"the run writes {format_bytes(needed)} ({parts}), {format_bytes(free)} are free",
                right=f"{format_bytes(needed)} on the disk of output_dir",
                type="output_dir=FOLDER_ON_A_LARGER_DISK, or save_total_limit=1, or save_steps=no",
            )
        )
    return f"disk: the run writes {format_bytes(needed)} to {folder} ({parts}); {format_bytes(free)} are free"
