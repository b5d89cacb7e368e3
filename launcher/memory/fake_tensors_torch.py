"""Tensors without values, for traces of some ten thousand operators: torch's fake mode with less around each.

What an operator's result looks like is torch's own answer, kept in torch's own cache (2.13). Only the key
that it is kept under is made with less work, and nothing asks whether a compiler is near: none is.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

# Without torch's guard against compilers around every call, where this release has one.
_plain_dispatch: Any = getattr(
    FakeTensorMode.__torch_dispatch__, "__wrapped__", FakeTensorMode.__torch_dispatch__
)
# Scalars as they are: 1 and 1.0 make different results, so the type is part of the key.
_SCALARS = frozenset(
    (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
)


class QuickFakeMode(FakeTensorMode):
    """A `FakeTensorMode` whose answers are the same."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """The result of one operator, without values."""
        return _plain_dispatch(self, func, types, args, kwargs or {})

    def _prep_args_for_hash(
        self, result: list[object], args: Iterable[object], state: Any, id_hashed_objects: list[object]
    ) -> None:
        """What torch notes of an argument, in one piece for each plain tensor."""
        if isinstance(args, dict):
            super()._prep_args_for_hash(result, args, state, id_hashed_objects)
            return
        if isinstance(args, list | tuple):
            result += (type(args), len(args))
        for each in args:
            if type(each) in _SCALARS:
                result += (type(each), each)
            elif type(each) is FakeTensor and (looks := self._looks(each)):
                result.append(looks)
            else:  # as torch does with everything else: in lists, or refused
                super()._prep_args_for_hash(result, iter((each,)), state, id_hashed_objects)

    def _looks(self, tensor: FakeTensor) -> tuple[object, ...] | None:
        """All that may change an operator's result; None for what is more than a plain tensor."""
        if tensor.fake_mode is not self or tensor.constant is not None or tensor.layout is not torch.strided:
            return None
        return (
            tensor.dtype,
            tensor.shape,
            tensor.stride(),
            tensor.fake_device,
            tensor.storage_offset(),
            tensor.untyped_storage().nbytes(),
            tensor.requires_grad,
            tensor.is_conj(),
            tensor.is_neg(),
            tensor.is_inference(),
        )


def device_of(tensor: Tensor) -> torch.device:
    """Where a tensor lies, without an operator that asks it."""
    return tensor.fake_device if type(tensor) is FakeTensor else tensor.device
