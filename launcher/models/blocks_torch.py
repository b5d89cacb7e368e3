"""The repeated blocks of a model: what is sharded, recomputed and laid over cards one by one."""

from torch import nn

from launcher.errors import Problem, UnknownSetting
from launcher.registry import nearest


def block_class_names(module: nn.Module) -> tuple[str, ...]:
    """Class names of the blocks: what the model itself says, else the longest list of equal modules."""
    said = {name for each in module.modules() for name in getattr(each, "_no_split_modules", None) or ()}
    there = {type(each).__name__ for each in module.modules()}
    if found := sorted(said & there):
        return tuple(found)
    lists = [each for each in module.modules() if isinstance(each, nn.ModuleList) and len(each) > 1]
    if not lists:
        return ()
    return (type(max(lists, key=len)[0]).__name__,)


def block_modules(module: nn.Module, names: tuple[str, ...] = ()) -> list[nn.Module]:
    """The blocks, in the model's order, without blocks inside blocks.

    `names` are a person's own class names. Raises UnknownSetting for one that the model does not have.
    """
    _require_known(module, names)
    wanted = set(names or block_class_names(module))
    found: list[nn.Module] = []
    inner: set[int] = set()
    for each in module.modules():
        if type(each).__name__ in wanted and id(each) not in inner:
            found.append(each)
            inner |= {id(part) for part in each.modules()}
    return found


def _require_known(module: nn.Module, names: tuple[str, ...]) -> None:
    there = {type(each).__name__ for each in module.modules()}
    unknown = [name for name in names if name not in there]
    if not unknown:
        return
    own = block_class_names(module)
    close = {type(each).__name__.lower(): type(each).__name__ for each in module.modules()}
    found = [close[near] for name in unknown if (near := nearest(name, close))]
    raise UnknownSetting(
        Problem(
            where="backend.wrap_classes",
            what=f"this model has no class {', '.join(unknown)}",
            right=f"its blocks: {', '.join(own) or 'none repeat'}"
            + (f"; nearest: {', '.join(dict.fromkeys(found))}" if found else ""),
            type=f"backend.wrap_classes=[{', '.join(own)}]   (or leave it out)",
        )
    )
