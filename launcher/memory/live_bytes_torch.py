"""Counts the bytes of live tensor storages, event by event, whatever allocates them: eager, fake or sharded.

A dispatch mode sees every operator's outputs below autograd; a weak reference to each storage tells when
it goes. Nothing is kept alive by being watched. What a kernel allocates and frees inside itself is not
seen: `cuda_kernels` says what that is on a card.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

from launcher.memory.fake_tensors_torch import device_of
from launcher.memory.trace_log import Birth, TraceLog

_WRAPPERS = ("DTensor", "AsyncCollectiveTensor")
_DEVICE = torch.ops.prim.device.default
Workspace = Callable[[Any, Sequence[Any]], int]


# The card of a trace: a CPU device with a number is not the host's, and fake tensors keep the two apart.
CARD = torch.device("cpu", 0)


def _storages(found: Any) -> Iterator[tuple[Tensor, torch.UntypedStorage]]:
    """Each plain tensor of an operator's result with its storage."""
    if isinstance(found, Tensor):
        if is_traceable_wrapper_subclass(found):  # a wrapper's own storage is only a number
            for name in found.__tensor_flatten__()[0]:
                yield from _storages(getattr(found, name))
        elif found.layout is torch.strided and device_of(found).type != "meta":  # shapes alone take no memory
            yield found, found.untyped_storage()
    elif isinstance(found, list | tuple):
        for each in found:
            yield from _storages(each)


class Paused:
    """A context in which nothing is noted: for tensors that others make only to ask for their shapes."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        """Stop noting."""
        self.depth += 1

    def __exit__(self, *error: Any) -> None:
        """Note again, where nobody else has stopped it."""
        self.depth -= 1


class LiveBytes(TorchDispatchMode):
    """Writes a `TraceLog` of allocations, frees and resizes while it is entered.

    `answers` maps a dtype's kind (`bool`, `int`, `float`) to what a host read of one element gives where
    tensors hold no values (fake tensors): masks, flags, norms.
    """

    def __init__(
        self,
        *,
        answers: Mapping[str, bool | float] | None = None,
        workspace: Workspace | None = None,
        card: torch.device | None = None,
    ) -> None:
        """`workspace(operator, arguments)`: bytes that its kernel needs while it runs. `card`: only tensors
        there are counted.
        """  # noqa: D205
        super().__init__()  # type: ignore[no-untyped-call]
        self.log = TraceLog()
        self._workspace = workspace
        self._card = card
        self.answers = None if answers is None else dict(answers)
        self._known: dict[int, tuple[int, Any]] = {}
        self.paused = Paused()
        self._resize: Callable[..., Any] = torch.UntypedStorage.resize_

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here: without torch's guard around every operator (2.13) a trace is quicker."""
        return False

    def __enter__(self) -> "LiveBytes":
        """Start watching; storages that are resized in place (FSDP2 does) are seen too."""
        tracker, plain = self, self._resize

        def resize_(storage: torch.UntypedStorage, size: int) -> Any:
            done = plain(storage, size)
            if known := tracker._known.get(storage._cdata):
                tracker.log.resize(known[0], size)
            return done

        torch.UntypedStorage.resize_ = resize_  # type: ignore[method-assign,assignment]
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop watching."""
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        torch.UntypedStorage.resize_ = self._resize  # type: ignore[method-assign]

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operator, then note storages that were not there before."""
        if func is _DEVICE and type(args[0]) is FakeTensor and not args[0].fake_mode.in_kernel_invocation:
            return args[0].fake_device  # more than half of all calls
        if any(each.__name__ in _WRAPPERS for each in types):
            return NotImplemented  # their pieces' operators come here one by one
        if self.paused.depth:
            return func(*args, **(kwargs or {}))
        if self.answers is not None and func is torch.ops.aten._local_scalar_dense.default:
            return self._answer(args[0])
        if self.answers is not None and func is torch.ops._c10d_functional.wait_tensor.default:
            return args[0]  # the fake one copies; the real one waits and hands its argument back
        with torch._C.DisableTorchFunction():  # a kernel's insides are nobody's calls of torch
            found = func(*args, **(kwargs or {}))
        self.see(found, func.__name__)
        if self._workspace is not None and (needed := self._workspace(func, args)):
            self.log.workspace(needed, func.__name__)
        return found

    def _answer(self, tensor: Tensor) -> bool | int | float:
        assert self.answers is not None
        if tensor.dtype is torch.bool:
            return self.answers["bool"]
        return float(self.answers["float"]) if tensor.is_floating_point() else int(self.answers["int"])

    def see(self, found: Any, origin: str) -> None:
        """Note the storages of `found` that are new; `origin` names what made them."""
        for tensor, storage in self._counted(found):
            key = storage._cdata
            if key in self._known:
                continue
            birth = Birth(
                num_bytes=storage.nbytes(),
                origin=origin,
                shape=tuple(tensor.shape),
                dtype=str(tensor.dtype).removeprefix("torch."),
            )
            number = self.log.born(birth)
            self._known[key] = (number, weakref.ref(storage, self._forget(key)))

    def _counted(self, found: Any) -> Iterator[tuple[Tensor, torch.UntypedStorage]]:
        for tensor, storage in _storages(found):
            if self._card is None or device_of(tensor) == self._card:
                yield tensor, storage

    def _forget(self, key: int) -> Callable[[Any], None]:
        def forget(_: Any) -> None:
            if known := self._known.pop(key, None):
                self.log.gone(known[0])

        return forget

    def numbers(self, tensors: Any) -> list[int]:
        """The log's numbers of these tensors' storages; nothing is kept alive by asking."""
        asked = [*tensors]
        self.see(asked, "before")
        return [self._known[storage._cdata][0] for _, storage in self._counted(asked)]

    def tag(self, tensors: Any, name: str) -> None:
        """Say what these tensors' storages are, for the whole log, backwards too."""
        for tensor, storage in self._counted([*tensors]):
            if storage._cdata not in self._known:
                self.see(tensor, name)
            self.log.tags.setdefault(self._known[storage._cdata][0], name)
