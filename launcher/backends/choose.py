"""Which backend a process runs when the starter left it open: the recipe's, where it can be met."""

from launcher.facts import Starter

DEEPSPEED_DEFAULT = "zero2"


def settle_backend(starter: Starter, recipe_backend: str) -> str:
    """The backend's name. The recipe's counts for a bare python start, and, a ZeRO one, under deepspeed."""
    if starter.backend is not None:
        return starter.backend
    if starter.name == "deepspeed" and not recipe_backend.startswith("zero"):
        return DEEPSPEED_DEFAULT
    if recipe_backend == "multi_gpu" and starter.world_size == 1:
        return "single_gpu"
    return recipe_backend
