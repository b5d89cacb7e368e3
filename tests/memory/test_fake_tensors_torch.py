"""The quicker fake mode: a trace's answers are torch's own, and scalars of other types stay apart."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from launcher.memory import trace_torch
from launcher.memory.fake_tensors_torch import QuickFakeMode, device_of
from launcher.memory.trace_request import TraceRequest

LLAMA = {
    **{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 128, "max_position_embeddings": 64},
}


@pytest.mark.parametrize("backend", ["single_gpu", "fsdp2"])
def test_a_trace_is_what_torchs_own_mode_makes_it(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = TraceRequest(
        config=LLAMA,
        adapter={"method": "lora"},
        seq_len=32,
        precision="bf16",
        checkpointing=True,
        backend=backend,
        num_ranks=1 if backend == "single_gpu" else 4,
    )
    quick = trace_torch.record(request)[0]
    monkeypatch.setattr(trace_torch, "QuickFakeMode", FakeTensorMode)
    plain = trace_torch.record(request)[0]
    assert quick.events == plain.events
    assert quick.births == plain.births
    assert quick.tags == plain.tags


def test_an_integer_and_a_float_of_the_same_value_make_different_results() -> None:
    with QuickFakeMode():
        whole = torch.ones(3, dtype=torch.int64)
        assert (whole * 1).dtype is torch.int64
        assert (whole * 1.0).dtype is torch.float32
        assert (whole * 1).dtype is torch.int64


def test_a_view_is_on_the_storage_that_it_views_when_its_answer_is_known() -> None:
    with QuickFakeMode():
        first, second = torch.empty(4, 6), torch.empty(4, 6)
        for each in (first, second):
            assert each[1:].untyped_storage()._cdata == each.untyped_storage()._cdata
        assert second[1:].storage_offset() == 6


def test_where_a_tensor_lies_is_told_with_values_and_without() -> None:
    place = torch.device("cpu", 0)
    with QuickFakeMode():
        assert device_of(torch.empty(2, device=place)) == place
    assert device_of(torch.ones(2)) == torch.device("cpu")
