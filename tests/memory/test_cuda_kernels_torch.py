"""What is kept for the backward pass, with CUDA's choices in the place of the CPU's."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from launcher.memory.cuda_kernels import KERNELS, cublas_workspace_bytes
from launcher.memory.cuda_kernels_torch import CudaKernels, workspace_bytes

Saved = Callable[[Callable[[], Tensor]], dict[tuple[int, ...], list[torch.dtype]]]


@pytest.fixture
def modes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        stack.enter_context(FakeTensorMode())
        yield stack


def _saved(work: Callable[[], Tensor]) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of every tensor that autograd keeps."""
    kept: list[tuple[tuple[int, ...], torch.dtype]] = []

    def pack(tensor: Tensor) -> Tensor:
        kept.append((tuple(tensor.shape), tensor.dtype))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        work()
    return kept


def _cuda(modes: ExitStack, capability: tuple[int, int] = (8, 0)) -> None:
    modes.enter_context(CudaKernels(compute_capability=capability))


def test_dropout_keeps_one_byte_an_element(modes: ExitStack) -> None:
    x = torch.empty(4, 8, requires_grad=True)
    on_cpu = _saved(lambda: F.dropout(x, 0.1))
    _cuda(modes)
    on_card = _saved(lambda: F.dropout(x, 0.1))
    assert ((4, 8), torch.float32) in on_cpu
    assert on_card == [((4, 8), torch.bool)]


def test_autocast_keeps_layer_norms_input_in_fp32(modes: ExitStack) -> None:
    x = torch.empty(4, 8, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        on_cpu = _saved(lambda: F.layer_norm(x, (8,)))
        _cuda(modes)
        on_card = _saved(lambda: F.layer_norm(x, (8,)))
    assert ((4, 8), torch.bfloat16) in on_cpu
    assert ((4, 8), torch.float32) in on_card


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_makes_softmax_fp32(modes: ExitStack, dtype: torch.dtype) -> None:
    x = torch.empty(4, 8, dtype=dtype, requires_grad=True)
    _cuda(modes)
    with torch.autocast("cpu", dtype):
        assert F.softmax(x, dim=-1).dtype is torch.float32
        assert x.pow(2).dtype is torch.float32
        assert x.sum().dtype is torch.float32
        assert _saved(lambda: F.softmax(x, dim=-1)) == [((4, 8), torch.float32)]


def test_softmax_of_fp16_makes_no_fp32_copy_of_its_input_and_returns_fp16_gradients(modes: ExitStack) -> None:
    from launcher.memory.live_bytes_torch import LiveBytes

    x = torch.empty(4, 128, dtype=torch.float16, requires_grad=True)
    tracker = modes.enter_context(LiveBytes())
    _cuda(modes)
    result = F.softmax(x, dim=-1, dtype=torch.float32)
    assert sum(birth.num_bytes for birth in tracker.log.births) == 4 * 128 * 4
    result.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is torch.float16


def _heads(count: int, dtype: torch.dtype, width: int = 16) -> Tensor:
    return torch.empty(2, count, 40, width, dtype=dtype, requires_grad=True)


def test_flash_attention_keeps_no_scores(modes: ExitStack) -> None:
    query, key, value = (_heads(4, torch.bfloat16) for _ in range(3))
    _cuda(modes)
    kept = _saved(lambda: F.scaled_dot_product_attention(query, key, value))
    assert ((2, 4, 40), torch.float32) in kept
    assert not any(shape[-2:] == (40, 40) for shape, _ in kept if len(shape) == 4)


def test_a_mask_or_an_older_card_takes_the_memory_efficient_kernel(modes: ExitStack) -> None:
    query, key, value = (_heads(4, torch.float16) for _ in range(3))
    mask = torch.ones(2, 1, 40, 40, dtype=torch.bool)
    _cuda(modes, (7, 5))
    kept = _saved(lambda: F.scaled_dot_product_attention(query, key, value))
    assert ((2, 4, 64), torch.float32) in kept  # log-sum-exp, 40 rounded to a multiple of 32
    kept = _saved(lambda: F.scaled_dot_product_attention(query, key, value, attn_mask=mask))
    assert ((2, 4, 40, 40), torch.float16) in kept


def test_fp32_with_grouped_heads_falls_back_to_the_plain_formula(modes: ExitStack) -> None:
    query, key, value = _heads(4, torch.float32), _heads(2, torch.float32), _heads(2, torch.float32)
    _cuda(modes)
    kept = _saved(lambda: F.scaled_dot_product_attention(query, key, value, enable_gqa=True))
    assert any(shape[-2:] == (40, 40) and dtype is torch.float32 for shape, dtype in kept)


def test_recomputation_in_the_backward_pass_uses_the_same_kernels(modes: ExitStack) -> None:
    from torch.utils.checkpoint import checkpoint

    query, key, value = (_heads(4, torch.bfloat16) for _ in range(3))
    _cuda(modes)

    def block(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.dropout(F.scaled_dot_product_attention(q, k, v), 0.1)

    loss = checkpoint(block, query, key, value, use_reentrant=False).float().sum()
    loss.backward()  # raises where the recomputation keeps other tensors
    assert query.grad is not None


def test_flash_backward_needs_an_fp32_query_gradient() -> None:
    func = torch.ops.aten._scaled_dot_product_flash_attention_backward.default
    query = torch.empty(2, 4, 128, 64, dtype=torch.bfloat16, device="meta")
    assert workspace_bytes(func, [query, query, query]) == 4 * 2 * 4 * 128 * (64 + 1)
    grouped = torch.empty(2, 2, 128, 64, dtype=torch.bfloat16, device="meta")
    more = workspace_bytes(func, [query, query, grouped]) - workspace_bytes(func, [query, query, query])
    assert more == 2 * 2 * (2 * 4 * 128 * 64)
    assert workspace_bytes(torch.ops.aten.mm.default, [query, query]) == 0


def test_every_entry_names_kernel_and_version() -> None:
    assert all(each.name and each.version and each.saves and each.replaces for each in KERNELS)
    assert len({each.name for each in KERNELS}) == len(KERNELS)


def test_cublas_workspaces_by_compute_capability() -> None:
    assert cublas_workspace_bytes((8, 9)) == 2 * 8_519_680
    assert cublas_workspace_bytes((9, 0)) == 2 * 33_554_432
