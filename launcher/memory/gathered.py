"""Whole weights that a sharded backend has on the card for a while, and buffers that ranks exchange."""

from dataclasses import dataclass

from launcher.memory.breakdown import Term
from launcher.memory.gradients import GradientBytes
from launcher.memory.parameters import trained_matrices
from launcher.memory.setting import Setting
from launcher.memory.sizes import BYTES, Sizes
from launcher.memory.states import gradient_width
from launcher.memory.weights import quantised_bytes
from launcher.memory.zero3_terms import NOWHERE, At, zero3_terms


@dataclass(frozen=True, kw_only=True)
class Units:
    """Bytes of what is gathered as one: a block, the embeddings where they are a unit, and all the rest."""

    block: int
    embeddings: int
    root: int


def units_of(setting: Setting, sizes: Sizes) -> Units:
    """Models that name their embeddings among what must not be split give FSDP2 a unit of them.

    transformers 5.24: `_no_split_modules = ["BertEmbeddings", "BertLayer"]`; launcher.models.blocks_torch.
    """
    width = BYTES[setting.gathered_dtype] if setting.gathered_dtype else sizes.weight_bytes
    shape = setting.shape
    apart = setting.sharding_kind == "fsdp2" and shape.has_embeddings_apart
    embeddings = shape.word_embedding_params + shape.other_embedding_params if apart else 0
    block = sizes.block * width
    if setting.quantisation != "none":
        other = sizes.block - sizes.block_linear
        block = int(sizes.block_linear * quantised_bytes(setting)) + other * width
    return Units(block=block, embeddings=embeddings * width, root=(sizes.root - embeddings) * width)


def adapters_are_units(setting: Setting, sizes: Sizes) -> bool:
    """FSDP2's units hold one type: fp32 adapters in a half block are units of their own, inside it."""
    return not sizes.trains_base and sizes.trained_bytes != sizes.weight_bytes


def gathered_terms(
    setting: Setting,
    sizes: Sizes,
    *,
    copies: int = 1,
    ahead: int = 0,
    with_embeddings: bool = False,
    at: At = NOWHERE,
) -> list[Term]:
    """Whole units on the card. `copies`: of a block; `ahead`: bytes of the unit on its way; `at`: the moment
    of the step, which decides under ZeRO-3.

    fsdp1: one block and the root (measured 0.961e9 on Mistral-7B: 0.436e9 + 0.524e9, on 2 and 4 ranks).
    fsdp2: a block's weights and the flat buffer that they were gathered in, which the forward pass keeps
    until the next unit's are there (`wait_for_unshard`, implicit prefetching): the next block, or adapters
    inside this one; the backward pass has the weights and the next unit's buffer. The root stays
    (`reshard_after_forward` is false for it). zero3: see `zero3_gathering`.
    """  # noqa: D205
    if not setting.sharding.parameters:
        return []
    if setting.sharding_kind == "zero3":
        return zero3_terms(setting, sizes, at)
    units = units_of(setting, sizes)
    count = copies if setting.sharding_kind == "fsdp2" and setting.num_ranks > 1 else min(copies, 1)
    found = [
        Term(name="gathered blocks", num_bytes=count * units.block, formula=f"{count} x block"),
        Term(name="gathered root", num_bytes=units.root, formula="last norm, head, embedding without a unit"),
        Term(name="prefetched unit", num_bytes=ahead, formula="the next unit's flat buffer"),
        Term(
            name="gathered embeddings",
            num_bytes=units.embeddings if with_embeddings else 0,
            formula="their own unit",
        ),
    ]
    return [each for each in found if each.num_bytes]


def next_unit(setting: Setting, sizes: Sizes, index: int) -> int:
    """Bytes that FSDP2 gathers ahead while block `index` goes back: the block below, or the embeddings."""
    if setting.sharding_kind != "fsdp2" or not setting.sharding.parameters or setting.num_ranks < 2:
        return 0
    units = units_of(setting, sizes)
    return units.block if index else units.embeddings


def first_gather(setting: Setting, sizes: Sizes) -> list[Term]:
    """FSDP2 at the embedding: the unit that holds it twice, flat and by parameters.

    The root stays as it is while the first block is gathered, flat and by parameters (`wait_for_unshard`
    lets the last flat buffer go when it returns); embeddings of their own are divided again before.
    """
    if setting.sharding_kind == "zero3":
        return zero3_terms(setting, sizes, ("embeddings", 0))
    if setting.sharding_kind != "fsdp2" or not setting.sharding.parameters or setting.num_ranks < 2:
        return []
    units = units_of(setting, sizes)
    if not units.embeddings:
        return [
            Term(name="gathered root", num_bytes=2 * units.root, formula="2 x root: weights, flat buffer"),
            Term(name="gathered blocks", num_bytes=2 * units.block, formula="2 x block: the first one's"),
        ]
    return [
        Term(name="gathered embeddings", num_bytes=2 * units.embeddings, formula="2 x their own unit"),
        Term(name="gathered root", num_bytes=units.root, formula="the rest"),
    ]


def unreduced_terms(setting: Setting, sizes: Sizes, found: GradientBytes, *, has_sent: bool) -> list[Term]:
    """FSDP2 keeps the input of the last unit's reduce-scatter until the next unit's gradients are there.

    torch 2.13, `reduce_scatter_states`; gradients of a unit are copied into it and let go.
    """
    if not (found.is_whole_first and has_sent and found.block):
        return []
    return [Term(name="unreduced gradients", num_bytes=found.block, formula="a block's reduce-scatter input")]


def whole_gradient_terms(setting: Setting, sizes: Sizes, *, of_root: bool = False) -> list[Term]:
    """FSDP1's gradients before they are divided: a block's and its reduce-scatter's input; the root's.

    A flat parameter has one gradient: where adapters share it with frozen weights (they are not wrapped on
    their own), the gradient is as large as the block.
    """
    if not setting.sharding.gradients or setting.num_ranks < 2 or setting.sharding_kind != "fsdp1":
        return []
    width = BYTES[setting.gathered_dtype] if setting.gathered_dtype else gradient_width(setting, sizes)
    if of_root:
        held = sizes.root * width if sizes.trains_base else 0
        return [Term(name="whole root gradient", num_bytes=held, formula="root x dtype")] if held else []
    if not sizes.trains_base and not setting.adapters_apart:
        elements = setting.shape.num_params // setting.num_ranks + sizes.block
        held = elements * sizes.weight_bytes
        return [Term(name="dense gradients", num_bytes=held, formula="(P / ranks + block) x dtype")]
    trained = sizes.block if sizes.trains_base else sizes.trained // max(1, setting.shape.num_layers)
    formula = "block's gradients and the reduce-scatter's input"
    return [Term(name="unreduced gradients", num_bytes=2 * trained * width, formula=formula)]


def bucket_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """Communication buffers that live through the backward pass.

    DDP: buckets as large as the gradients, unless gradients are views of them. ZeRO: one reduce bucket
    in the gradients' type, two where reduction overlaps (deepspeed: `ipg_buckets`), however little trains.
    """
    width = gradient_width(setting, sizes)
    if setting.sharding_kind.startswith("zero"):
        elements = setting.reduce_bucket_elements
        count = 2 if setting.sharding_kind in ("zero1", "zero2") else 1
        return [Term(name="reduce buckets", num_bytes=count * elements * width, formula=f"{count} buckets")]
    if setting.sharding_kind == "none" and setting.num_ranks > 1 and not setting.ddp_bucket_view:
        return [Term(name="DDP buckets", num_bytes=sizes.trained * width, formula="as the gradients")]
    return []


def staging_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """What stands on the card for the way to host memory.

    ZeRO-1/2 with offloaded states: a buffer of the largest trained parameter (deepspeed 0.19.8,
    stage_1_and_2.py: `temp_grad_buffer_for_gpu_offload`). Pieces that come from host memory are gone when
    they are gathered: traced, no worst moment has them.
    """
    if setting.sharding_kind not in ("zero1", "zero2") or not setting.sharding.offload_optimizer:
        return []
    largest = max(trained_matrices(setting, sizes), default=0)
    held = min(largest, sizes.trained) * gradient_width(setting, sizes)
    return [Term(name="offload staging", num_bytes=held, formula="largest parameter's gradient")]


def retained_stream_bytes(setting: Setting, sizes: Sizes) -> int:
    """FSDP1 with frozen weights keeps about one more hidden state a block during the backward pass.

    Its reshard hooks for frozen parameters (torch/distributed/fsdp: register_multi_grad_hook) hold the
    blocks' input gradients; measured 60 h bytes a token at 32 blocks on Mistral-7B and Llama-3-8B.
    """
    if setting.sharding_kind != "fsdp1" or sizes.trains_base:
        return 0
    kept = max(0, setting.shape.num_layers - 2)
    return kept * sizes.residual_bytes * setting.shape.hidden_size * sizes.tokens
