"""What CUDA kernels keep for the backward pass where this machine's CPU kernels keep something else.

One entry a kernel, with the version whose source it was read from. `cuda_kernels_torch` puts them in the
CPU kernels' place while a trace runs. No torch here: plans may show the table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CudaKernel:
    """`saves`: kept from forward to backward; `workspace`: there only while the kernel runs."""

    name: str
    replaces: str
    saves: str
    workspace: str
    version: str


KERNELS = (
    CudaKernel(
        name="_scaled_dot_product_flash_attention (FlashAttention-2)",
        replaces="sdpa without a mask, fp16 or bf16, heads up to 256 wide, compute capability >= 8.0",
        saves="query, key, value, output; log-sum-exp fp32 [rows, heads, length]; generator state",
        workspace="backward: fp32 query gradient [rows, heads, length to 128, width to 32], row sums fp32; "
        "with grouped heads key and value gradients of every query head",
        version="torch 2.13, aten/native/transformers/cuda/flash_attn/flash_api.cpp",
    ),
    CudaKernel(
        name="_scaled_dot_product_efficient_attention (CUTLASS memory-efficient)",
        replaces="sdpa with a mask, or fp32, or compute capability < 8.0; not with grouped heads",
        saves="query, key, value, output, the additive mask; log-sum-exp fp32, length to a multiple of 32",
        workspace="forward: a boolean mask becomes one of the compute type; backward: row sums fp32, and for "
        "fp16 and bf16 the query gradient in fp32",
        version="torch 2.13, aten/native/transformers/cuda/attention_backward.cu",
    ),
    CudaKernel(
        name="_scaled_dot_product_attention_math",
        replaces="sdpa that neither of the two takes (fp32 with grouped heads)",
        saves="every intermediate of the plain formula: probabilities [rows, heads, length, length]",
        workspace="none of its own",
        version="torch 2.13, aten/native/transformers/attention.cpp",
    ),
    CudaKernel(
        name="autocast's fp32 list",
        replaces="layer_norm, softmax, log_softmax, pow, rsqrt, exp, sum, norm, ... in half precision",
        saves="their inputs and results in fp32; CPU autocast leaves them in bf16",
        workspace="none",
        version="torch 2.13, aten/autocast_mode.h AT_FORALL_FP32 and AT_FORALL_FP32_SET_OPT_DTYPE",
    ),
    CudaKernel(
        name="softmax from fp16 to fp32",
        replaces="softmax(dtype=float32) of fp16 input",
        saves="the fp32 result; no fp32 copy of the input is made (bf16 makes one)",
        workspace="none",
        version="torch 2.13, aten/native/SoftMax.cpp",
    ),
    CudaKernel(
        name="native_dropout",
        replaces="dropout",
        saves="a boolean mask, one byte an element; CPU keeps a mask of the input's type",
        workspace="none",
        version="torch 2.13, aten/native/Dropout.cpp is_fused_kernel_acceptable",
    ),
    CudaKernel(
        name="_log_softmax and nll_loss_forward (cross entropy)",
        replaces="nothing: CPU kernels keep the same, the log-probabilities in fp32",
        saves="log-probabilities fp32 [targets, classes], targets",
        workspace="none",
        version="torch 2.13, aten/native/LossNLL.cpp",
    ),
    CudaKernel(
        name="_foreach_* AdamW",
        replaces="the per-parameter loop that torch takes on CPU",
        saves="nothing",
        workspace="the square root of every second moment at once, in the parameters' type",
        version="torch 2.13, torch/optim/adamw.py _multi_tensor_adamw",
    ),
    CudaKernel(
        name="_fused_adamw_",
        replaces="nothing: in place on both",
        saves="nothing; its step counts lie on the card",
        workspace="none",
        version="torch 2.13, aten/native/cuda/FusedAdamWKernel.cu",
    ),
    CudaKernel(
        name="bitsandbytes MatMul4Bit",
        replaces="linear layers with 4-bit weights",
        saves="neither input nor dequantised weight",
        workspace="forward and backward: the layer's weight in the compute type",
        version="bitsandbytes 0.50.2, autograd/_functions.py",
    ),
    CudaKernel(
        name="cuBLAS",
        replaces="nothing: CPU products have no such buffer",
        saves="one workspace a handle and stream, forward thread and backward thread, never freed",
        workspace="8,519,680 bytes each before compute capability 9.0, 33,554,432 from there",
        version="torch 2.13, aten/cuda/CUDABlas.cpp and CublasHandlePool.cpp",
    ),
)


def cublas_workspace_bytes(compute_capability: tuple[int, int]) -> int:
    """Both threads' workspaces. Source: CublasHandlePool.cpp, getChosenWorkspaceSize (torch 2.13)."""
    one = 4096 * 8 * 1024 if compute_capability >= (9, 0) else 4096 * 2 * 1024 + 16 * 8 * 1024
    return 2 * one
