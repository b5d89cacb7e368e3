"""Says what the storages of a traced step are: weights, gradients, states, and what ranks exchange."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from launcher.backends.strategy_torch import Strategy
from launcher.backends.zero_torch import ZeroStrategy
from launcher.memory.live_bytes_torch import LiveBytes


def tag_weights(tracker: LiveBytes, strategy: Strategy) -> None:
    """What this rank holds of every parameter, and the copies that its optimizer steps on."""
    module = strategy.parts.module
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    all_train = len(trained) == sum(1 for _ in module.parameters())
    held = [*strategy.local_tensors()]
    tracker.tag((each for name, each in held if name in trained), "weights" if all_train else "adapter")
    tracker.tag((each for name, each in held if name not in trained), "weights")
    tracker.tag(module.buffers(), "weights")
    stepped = [each for group in strategy.optimizer.param_groups for each in group["params"]]
    if isinstance(strategy, ZeroStrategy):  # stage 3 shows its optimizer one piece at a time
        stepped += strategy._partitions()
    tracker.tag((each.detach() for each in stepped), "master weights")


def tag_gradients(tracker: LiveBytes, strategy: Strategy) -> None:
    """After the last backward pass of a window: what the step will read."""
    parameters = strategy.parts.module.parameters()
    tracker.tag((_local(each.grad) for each in parameters if each.grad is not None), "gradients")
    engine = getattr(strategy, "zero", None)
    divided = engine.averaged_gradients.values() if engine is not None else ()
    tracker.tag((each for group in divided for each in group or () if each is not None), "gradients")


def tag_traffic(tracker: LiveBytes, strategy: Strategy) -> None:
    """What sharding gathers and sends: whole weights of a unit, and flat buffers on their way."""
    tracker.tag(_gathered(strategy), "gathered weights")
    if strategy.parts.settings.num_ranks == 1:
        return
    for number, birth in enumerate(tracker.log.births):
        if birth.origin == "empty.memory_format" and len(birth.shape) == 1:
            tracker.log.tags.setdefault(number, "communication buffers")


def _gathered(strategy: Strategy) -> Iterator[Any]:
    for module in strategy.parts.module.modules():
        group = getattr(getattr(module, "_fsdp_state", None), "_fsdp_param_group", None)
        for parameter in group.fsdp_params if group else ():
            yield from parameter.all_gather_outputs


def tag_states(tracker: LiveBytes, strategy: Strategy) -> None:
    """The optimizer's moments and counts."""
    for state in strategy.optimizer.state.values():
        tracker.tag([each for each in state.values() if isinstance(each, Tensor)], "optimizer states")


def _local(tensor: Any) -> Tensor:
    found: Tensor = getattr(tensor, "_local_tensor", tensor)
    return found
