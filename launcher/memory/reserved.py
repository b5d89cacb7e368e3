"""From allocated bytes to what the allocator reserves and nvidia-smi shows: a range, not a figure."""

from launcher.memory.setting import Setting

MIB = 1 << 20
# CUDA context and kernels: T4 141 MiB (torch 2.14), A100 about 0.4-0.6 GiB (nvidia-smi minus reserved).
DEFAULT_CONTEXT_BYTES = 450 * MIB
# NCCL's buffers for one communicator.
COMMUNICATOR_BYTES = 300 * MIB


def context_bytes(setting: Setting) -> int:
    """Driver context and, with several ranks, the communicator's buffers."""
    context = setting.context_bytes or DEFAULT_CONTEXT_BYTES
    return context + (COMMUNICATOR_BYTES if setting.num_ranks > 1 else 0)


def reserved_range(
    setting: Setting, allocated: int, largest_blocks: int, usable_bytes: int | None = None
) -> tuple[int, int]:
    """Lowest and highest likely `max_memory_reserved`.

    The allocator strands freed blocks that no later request fits: at most about the large short-lived
    tensors (logits, the block at work), `largest_blocks`.
    """
    low = allocated + allocated // 100
    high = allocated + max(allocated // 10, largest_blocks)
    if usable_bytes is not None:
        high = max(low, min(high, usable_bytes))
    return low, high
