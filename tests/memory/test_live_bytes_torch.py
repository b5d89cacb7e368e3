"""The live-byte tracker: storages once, frees when they go, in place resizes, nothing kept alive."""

import gc
import weakref

import torch

from launcher.memory.live_bytes_torch import LiveBytes


def _total(tracker: LiveBytes, granularity: int = 1) -> int:
    return sum(after - before for _, _, before, after in tracker.log.sizes(granularity))


def test_a_view_is_no_second_allocation() -> None:
    with LiveBytes() as tracker:
        whole = torch.zeros(1000)
        parts = [whole.view(10, 100), whole[5:], whole.t()]
    assert _total(tracker) == 4000
    assert len(tracker.log.births) == 1
    assert len(parts) == 3


def test_bytes_go_when_the_last_tensor_on_the_storage_goes() -> None:
    with LiveBytes() as tracker:
        whole = torch.zeros(1000)
        part = whole[:1]
        del whole
        assert _total(tracker) == 4000
        del part
        gc.collect()
    assert _total(tracker) == 0


def test_watching_keeps_nothing_alive() -> None:
    with LiveBytes() as tracker:
        tensor = torch.zeros(10)
        tracker.tag([tensor], "weights")
        seen = weakref.ref(tensor.untyped_storage())
        del tensor
        gc.collect()
        assert seen() is None


def test_what_autograd_saves_is_counted_until_the_backward_pass() -> None:
    weight = torch.ones(100, requires_grad=True)
    with LiveBytes() as tracker:
        tracker.tag([weight.detach()], "weights")
        loss = (weight.exp() * 2).sum()
        with_graph = _total(tracker)
        loss.backward()
        without = _total(tracker)
    assert with_graph == 400 + 400 + 4  # the weight, exp's result, the loss
    assert without == 400 + 4 + 400  # the weight, the loss, the gradient


def test_a_storage_resized_in_place_changes_the_sum() -> None:
    with LiveBytes() as tracker:
        tensor = torch.zeros(100)
        tensor.untyped_storage().resize_(0)
        assert _total(tracker) == 0
        tensor.untyped_storage().resize_(800)
        assert _total(tracker) == 800
    assert torch.UntypedStorage.resize_.__name__ == "resize_"


def test_sizes_are_rounded_as_the_caching_allocator_rounds() -> None:
    with LiveBytes() as tracker:
        kept = [torch.zeros(1), torch.zeros(129)]
    assert _total(tracker, granularity=512) == 512 + 1024
    assert len(kept) == 2


def test_a_host_read_of_a_tensor_without_values_is_answered() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), LiveBytes(answers={"bool": True, "float": 0.5, "int": 3}):
        assert bool(torch.ones(3, dtype=torch.bool).all()) is True
        assert torch.ones(3).sum().item() == 0.5
        assert torch.ones(3, dtype=torch.int64).sum().item() == 3


def test_a_tag_names_a_storage_for_the_whole_log() -> None:
    with LiveBytes() as tracker:
        tracker.log.mark("forward/before")
        tensor = torch.zeros(128)
        tracker.log.mark("backward/before")
        tracker.tag([tensor], "weights")
    assert tracker.log.peaks()["forward/before"].by_tag == {"weights": 512}
