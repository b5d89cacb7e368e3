"""Whole weights that a sharded backend has on the card for a while, and buffers that ranks exchange."""

from launcher.memory.breakdown import Term
from launcher.memory.setting import Setting
from launcher.memory.sizes import BYTES, Sizes, ranks_of
from launcher.memory.states import gradient_width
from launcher.memory.weights import quantised_bytes


def unit_bytes(setting: Setting, sizes: Sizes) -> tuple[int, int]:
    """Bytes of one block and of the root (embedding, last norm, head) when gathered."""
    width = BYTES[setting.gathered_dtype] if setting.gathered_dtype else sizes.weight_bytes
    rest = width
    if setting.quantisation != "none":
        other = sizes.block - sizes.block_linear
        return int(sizes.block_linear * quantised_bytes(setting)) + other * rest, sizes.root * rest
    return sizes.block * width, sizes.root * width


def gathered_terms(setting: Setting, sizes: Sizes, phase: str) -> list[Term]:
    """Whole units on the card in a forward or backward pass.

    fsdp1: one block and the root (measured 0.961e9 on Mistral-7B: 0.436e9 + 0.524e9, on 2 and 4 ranks).
    fsdp2: in the backward pass the block at work and the next one, prefetched; the last one when the loss
    is taken; and the root, which stays (`reshard_after_forward` is false for it). zero3: what fits
    `prefetch_bucket_elements` beside the block.
    """
    if not setting.sharding.parameters:
        return []
    block, root = unit_bytes(setting, sizes)
    if setting.sharding_kind == "zero3":
        if setting.num_ranks == 1:
            return []
        width = sizes.weight_bytes
        ahead = min(setting.prefetch_bucket_elements, sizes.block) * width
        largest = max(setting.shape.word_embedding_params * width, block)
        return [
            Term(name="gathered weights", num_bytes=largest, formula="largest of block and embedding"),
            Term(name="prefetched weights", num_bytes=ahead, formula="prefetch bucket"),
        ]
    units = 1
    if setting.sharding_kind == "fsdp2":
        units = 2 if phase == "backward" and setting.num_ranks > 1 else 1
    blocks = min(units, setting.shape.num_layers) * block
    return [
        Term(name="gathered blocks", num_bytes=blocks, formula=f"{units} x block"),
        Term(name="gathered root", num_bytes=root, formula="embedding, last norm, head"),
    ]


def whole_gradient_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """Gradients before they are divided.

    FSDP1 gives a flat parameter one gradient: where adapters share it with frozen weights (they are not
    wrapped on their own), the gradient is as large as the block.
    """
    if not setting.sharding.gradients or setting.num_ranks < 2:
        return []
    width = gradient_width(setting, sizes)
    if setting.sharding_kind == "fsdp1" and not sizes.trains_base and not setting.adapters_apart:
        elements = setting.shape.num_params // setting.num_ranks + sizes.block
        held = elements * sizes.weight_bytes
        return [Term(name="dense gradients", num_bytes=held, formula="(P / ranks + block) x dtype")]
    trained_block = sizes.block if sizes.trains_base else sizes.trained // max(1, setting.shape.num_layers)
    if setting.sharding_kind in ("fsdp1", "fsdp2"):
        gathered = BYTES[setting.gathered_dtype] if setting.gathered_dtype else width
        name, formula = "unreduced gradients", "block's gradients and the reduce-scatter's input"
        return [Term(name=name, num_bytes=2 * trained_block * gathered, formula=formula)]
    return []


def bucket_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """Communication buffers that live through the backward pass.

    DDP: buckets as large as the gradients, unless gradients are views of them. ZeRO: one reduce bucket
    in the gradients' type, two where reduction overlaps (deepspeed: `ipg_buckets`).
    """
    width = gradient_width(setting, sizes)
    if setting.sharding_kind.startswith("zero"):
        elements = min(setting.reduce_bucket_elements, sizes.trained)
        count = 2 if setting.sharding_kind in ("zero1", "zero2") else 1
        return [Term(name="reduce buckets", num_bytes=count * elements * width, formula=f"{count} buckets")]
    if setting.sharding_kind == "none" and setting.num_ranks > 1 and not setting.ddp_bucket_view:
        return [Term(name="DDP buckets", num_bytes=sizes.trained * width, formula="as the gradients")]
    return []


def root_gradient_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """FSDP's root unit (embedding, last norm, head) has its gradient whole before it is divided."""
    if not sizes.trains_base or setting.sharding_kind not in ("fsdp1", "fsdp2") or setting.num_ranks < 2:
        return []
    width = BYTES[setting.gathered_dtype] if setting.gathered_dtype else gradient_width(setting, sizes)
    return [Term(name="whole root gradient", num_bytes=sizes.root * width, formula="root x dtype")]


def _largest(setting: Setting) -> int:
    """Elements of the largest parameter."""
    return max([setting.shape.word_embedding_params, *(x.num_params for x in setting.shape.linears)])


def load_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """FSDP2 divides on the card what was moved there whole: the weights, their pieces, one on its way."""
    if setting.sharding_kind != "fsdp2" or not setting.loads_whole:
        return []
    adapters = 0 if sizes.trains_base else sizes.trained * sizes.trained_bytes
    whole = setting.shape.num_params * sizes.weight_bytes + adapters
    on_its_way = _largest(setting) * sizes.weight_bytes
    return [
        Term(name="weights before sharding", num_bytes=whole, formula="P x dtype"),
        Term(name="weights", num_bytes=whole // ranks_of(setting), formula="P x dtype / ranks"),
        Term(name="parameter on its way", num_bytes=on_its_way, formula="largest parameter"),
    ]


def save_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """What a save puts on the card: everything at once, or one parameter after another.

    One parameter: its weight and both moments whole in fp32, and the buffer that gathers the last of them.
    """
    if setting.save_gathers and setting.sharding.parameters:
        whole = setting.shape.num_params * sizes.weight_bytes
        return [Term(name="gathered state", num_bytes=whole, formula="P x dtype: whole state dict")]
    if setting.sharding_kind == "none":
        return []
    if sizes.trains_base:
        held = 4 * 4 * _largest(setting)
        return [Term(name="gathered parameter", num_bytes=held, formula="4 x 4 bytes x largest parameter")]
    if not setting.sharding.parameters:
        return []
    held = 2 * sizes.weight_bytes * _largest(setting)
    return [Term(name="gathered parameter", num_bytes=held, formula="2 x dtype x largest frozen parameter")]


def retained_stream_bytes(setting: Setting, sizes: Sizes) -> int:
    """FSDP1 with frozen weights keeps about one more hidden state a block during the backward pass.

    Its reshard hooks for frozen parameters (torch/distributed/fsdp: register_multi_grad_hook) hold the
    blocks' input gradients; measured 60 h bytes a token at 32 blocks on Mistral-7B and Llama-3-8B.
    """
    if setting.sharding_kind != "fsdp1" or sizes.trains_base:
        return 0
    kept = max(0, setting.shape.num_layers - 2)
    return kept * sizes.residual_bytes * setting.shape.hidden_size * sizes.tokens
