"""Sees in the first forward pass which type a linear layer really computes in."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from launcher.step.module import TrainModule
from launcher.train.numbers_fp32 import MARK


class PrecisionProbe:
    """One hook on the first linear layer inside the blocks, gone after its first call."""

    def __init__(self, module: TrainModule) -> None:
        """Watch `module`; nothing happens before `attach`."""
        self.module = module
        self.handle: RemovableHandle | None = None

    def attach(self, say: Callable[[str], None]) -> None:
        """Check at the first forward pass; raises LaunchMismatch there if the type is another one."""
        linear = (each for each in self.module.modules() if isinstance(each, nn.Linear))
        layer = next((each for each in linear if not getattr(each, MARK, False)), None)
        if layer is None:
            return
        self.handle = layer.register_forward_hook(lambda *call: self._check(call[2], say))

    def _check(self, output: Any, say: Callable[[str], None]) -> None:
        assert self.handle is not None and isinstance(output, torch.Tensor)
        self.handle.remove()
        precision = self.module.precision
        precision.check(output.dtype)
        say(
            f"precision {precision.name}: linear layers compute in {str(output.dtype).removeprefix('torch.')}"
        )
