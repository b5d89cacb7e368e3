"""Connects one process over several cards through accelerate's `dispatch_model` (accelerate 1.15)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from launcher.backends.plain_torch import PlainStrategy
from launcher.backends.strategy_torch import Parts, Strategy, mismatch, remember_rates
from launcher.models.blocks_torch import block_class_names

Device = int | str | torch.device


class ModelParallelStrategy(PlainStrategy):
    """Whole gradients and states, each beside its layer. On one device it is one process, and says so."""

    def __init__(self, parts: Parts, num_cards: int) -> None:
        """Lay the layers over the cards, then build the optimizer: it must see the moved parameters."""
        if num_cards < 2:
            super().__init__(parts)
            return
        Strategy.__init__(self, parts)
        self.module = spread(parts.module, num_cards)
        self.optimizer = remember_rates(parts.make_optimizer(parts.groups))
        self._fused = bool(self.optimizer.defaults.get("fused"))

    def devices(self) -> list[str]:
        """The devices that hold parameters, in the order of the layers."""
        return list(dict.fromkeys(str(parameter.device) for parameter in self.module.parameters()))

    def _scale_gradients(self, gradients: list[Tensor], norm: Tensor) -> None:
        """Device by device: one factor cannot be multiplied into tensors of another card."""
        for device in dict.fromkeys(gradient.device for gradient in gradients):
            super()._scale_gradients([each for each in gradients if each.device == device], norm.to(device))

    def check(self) -> str:
        """One rank; with several cards, parameters on every one of them."""
        ranks, found = self.parts.settings.num_ranks, self.devices()
        if ranks != 1:
            raise mismatch(f"{ranks} ranks on model_parallel", "one process that uses every card")
        if self.parts.device.type != "cuda" or torch.cuda.device_count() < 2:
            return f"model_parallel: one device ({found[0]}): layers are not spread, nothing proven"
        if len(found) < 2:
            raise mismatch(f"every layer is on {found[0]}", f"layers on {torch.cuda.device_count()} cards")
        return f"model_parallel: layers on {', '.join(found)}, one card working at a time"


def spread(module: nn.Module, num_cards: int) -> nn.Module:
    """The module with its model laid over the cards; the model's results come back to the first card.

    The loss is then taken from whole logits: in pieces it would use the head beside its hooks.
    """
    from accelerate import dispatch_model

    model = getattr(module, "model", module)
    room = {card: torch.cuda.mem_get_info(card)[0] for card in range(num_cards)}
    dispatch_model(model, device_map=balanced_map(model, room), main_device=0)
    if hasattr(module, "chunk_bytes"):
        module.chunk_bytes = None  # type: ignore[assignment]
    return module


def balanced_map(module: nn.Module, free_bytes: Mapping[int, int]) -> dict[str, Any]:
    """Module name to card: blocks whole, in order, near-equal shares of what the cards have free."""
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    whole = list(block_class_names(module))
    limits = get_balanced_memory(module, max_memory=dict(free_bytes), no_split_module_classes=whole)
    found: dict[str, Any] = infer_auto_device_map(module, max_memory=limits, no_split_module_classes=whole)
    return found


def connect(parts: Parts) -> Strategy:
    """The strategy for one process over every visible card."""
    return ModelParallelStrategy(parts, torch.cuda.device_count() if parts.device.type == "cuda" else 1)
