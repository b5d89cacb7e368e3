"""What a recipe would take on another number of cards, in a few words for an error message."""

from launcher.errors import LauncherError
from launcher.plan.choose import make_plan
from launcher.plan.known_shape import known_shape
from launcher.plan.pretend import pretend_machine
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes


def memory_words(recipe: Recipe, num_gpus: int) -> str:
    """`; 14.9 GiB a card predicted` on the recipe's own card; empty where that cannot be told."""
    from launcher.plan.prediction import predict  # only on the way to a refusal

    shape, gpu = known_shape(recipe), recipe.hardware.gpu
    if shape is None or gpu is None:
        return ""
    backend = "single_gpu" if num_gpus == 1 and recipe.backend.name == "multi_gpu" else recipe.backend.name
    try:
        machine = pretend_machine(gpu, num_gpus)
        plan = make_plan(recipe, name="", machine=machine, backend=backend, num_ranks=num_gpus, shape=shape)
        found = predict(recipe, shape, machine, backend=backend, step=plan.step)
    except LauncherError:
        return ""
    return f"; {format_bytes(found.breakdown.peak_bytes)} a card predicted"
