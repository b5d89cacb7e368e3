"""The work in one optimizer step of one rank: products, bytes moved, weights gathered. No card in here.

Everything is counted for one micro batch of `T = micro_batch x seq_len` tokens, forward, recomputed
forward and backward together. A pass is one reading of a layer: forward 1, recomputation 1 with full
checkpointing (attention only with selective), backward 2 where the weights are trained (one product for
the input's gradient, one for the weight's) and 1 where they are frozen. So full fine-tuning takes 3
passes without checkpointing and 4 with it (the factor 4/3), LoRA 2 and 3.
"""

from dataclasses import dataclass

from launcher.memory.setting import Setting

# Bytes of one element.
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}
_PACKED = {"nf4": 0.5625, "fp4": 0.5625, "int8": 1.0, "gptq4": 0.52, "gptq8": 1.02}

# Element-wise traffic of one block, in bytes a token in 2-byte arithmetic, each read or write counted once
# (the operations as Transformers writes them):
# RMSNorm: up-cast 2+4, square 4+4, mean 4, scale 4+4, down-cast 4+2, weight 2+2 = 36 a hidden element;
# layer norm is one kernel: 2+2. A fused RMSNorm likewise 4. Two norms a block.
_NORM = {"rms": 2 * 36, "layer": 2 * 4}
_NORM_FUSED = 2 * 4
# Residual sums, two a block: 2 reads and a write of 2 bytes each.
_RESIDUAL = 2 * 6
# Dropout: read 2, write 2 and a mask of 1 byte; two a block.
_DROPOUT = 5
# With an fp32 stream (4-bit preparation up-casts norms and embeddings) all of it moves twice the bytes, and
# each of about six inputs of a linear layer is cast for its product: read 4, write 2.
_RECAST = 6
# Rotary positions: x cos 4, halves turned 7, sin 4, sum 6 = 21; in one kernel 4. Per query and key element.
_ROTARY, _ROTARY_FUSED = 21, 4
# Activation and, where gated, the product: 4 + 6 an intermediate element; GELU as one kernel 4.
_GATED, _PLAIN_ACTIVATION = 10, 4
# GELU written out (tanh of a cubic: pow, two products, two sums, tanh, product, product): about 8 kernels.
_WRITTEN_OUT = 34
_WRITTEN_OUT_NAMES = ("gelu_new", "gelu_pytorch_tanh_python", "bloom_gelu")
# Backward moves about twice what forward does: it reads the saved input, the gradient, and writes one.
_BACKWARD = 2.0
# Eager attention: scores written by the product, scaled, masked, up-cast, softmax, down-cast, dropout,
# read by the product: about 30 bytes a score.
_EAGER_SCORE = 30
# A LoRA pair as PEFT runs it with fp32 pairs beside bf16 weights: the input is up-cast (2+4), cast again for
# the product (4+2) and read (2): 14 an input element; the product is written 2, scaled 4, added 6: 12 an
# output element. Fused pairs (QLoRA and GPTQ kernels) only read the input and add to the output.
_PAIR_IN, _PAIR_OUT = 14, 12
_PAIR_IN_FUSED, _PAIR_OUT_FUSED = 2, 4
# Loss, bytes a logit: plain is up-cast 2+4, shifted copy 4+4, log-softmax 4+4, its gradient 4+4+4, the
# copies' gradients 4+4, down-cast 4+2 = 48; a fused kernel on the written logits 2+2+2 = 6 and the
# product's own write and reads 6; chunked as plain without the shifted copies; linear-fused stays in cache,
# but multiplies in chunks (counted as 8: its written and read gradient of the input).
_LOSS = {"plain": 48, "fused": 12, "chunked": 36, "linear_fused": 8}
# Kernels that one block launches forward and the share of a kernel's launch that nothing hides.
_LAUNCHES = {True: 22, False: 40}
_LAUNCHES_PAIR = 8
_LAUNCHES_PAIR_FUSED = 2


@dataclass(frozen=True, kw_only=True)
class Work:
    """Counts of one micro batch on one rank."""

    tokens: int
    matrix_flops: float
    attention_flops: float
    elementwise_bytes: float
    loss_bytes: float
    adapter_bytes: float
    adapter_flops: float
    weight_bytes: float
    unpacked_bytes: float
    num_launches: float


@dataclass(frozen=True, kw_only=True)
class Passes:
    """How often a block's products are made: `forward` (recomputation included) and `backward`."""

    forward: float
    backward: float

    @property
    def total(self) -> float:
        """All passes."""
        return self.forward + self.backward


def passes(setting: Setting) -> Passes:
    """Of the blocks. Checkpointing `full` adds a forward, `selective` only the attention's share."""
    again = {"none": 0.0, "selective": 0.15, "full": 1.0}[setting.checkpointing]
    return Passes(forward=1.0 + again, backward=2.0 if trains_base(setting) else 1.0)


def trains_base(setting: Setting) -> bool:
    """Whether the weights themselves get gradients."""
    return setting.adapter is None


def work(setting: Setting) -> Work:
    """Count one micro batch. `fused_norm`: norms, rotary positions and packed pairs in one kernel each."""
    fused_kernels = setting.fused_norm
    shape, tokens = setting.shape, setting.micro_batch * setting.seq_len
    times = passes(setting)
    moved = times.forward + _BACKWARD
    width = WIDTH["float32"] / 2 if setting.precision == "fp32" else 1.0
    fused_pairs = fused_kernels and setting.quantisation != "none"
    pair_bytes, pair_flops = _pairs(setting, times, fused=fused_pairs)
    return Work(
        tokens=tokens,
        matrix_flops=tokens * (_block_flops(setting, times) + _head_flops(setting)),
        attention_flops=tokens * _attention_flops(setting, times),
        elementwise_bytes=tokens * width * shape.num_layers * moved * _elementwise(setting, fused_kernels),
        loss_bytes=tokens * _loss_bytes(setting),
        adapter_bytes=tokens * width * pair_bytes,
        adapter_flops=tokens * pair_flops,
        weight_bytes=_weight_bytes(setting) * times.total,
        unpacked_bytes=_unpacked_bytes(setting) * times.total,
        num_launches=_launches(setting, moved, fused_kernels, fused_pairs),
    )


def _block_flops(setting: Setting, times: Passes) -> float:
    """Two operations a weight and pass; of several experts only those that a token visits would count."""
    return 2.0 * setting.shape.num_layers * setting.shape.block_linear_params * times.total


def _head_flops(setting: Setting) -> float:
    """The language model's head is outside the checkpoints; a classifier's is nothing beside the blocks."""
    shape = setting.shape
    if shape.task != "causal_lm":
        return 0.0
    return 2.0 * shape.hidden_size * shape.vocab_size * (3 if trains_base(setting) else 2)


def _attention_flops(setting: Setting, times: Passes) -> float:
    """Scores and their use: 4 s d a token and layer, half of it under a causal mask; backward is 2.5 forward.

    FlashAttention's backward makes five products where forward makes two (Dao 2023, arXiv:2307.08691).
    Eager and masked kernels make the whole square.
    """
    shape = setting.shape
    causal = 0.5 if shape.is_decoder and setting.attention != "eager" else 1.0
    forward = 4.0 * causal * setting.seq_len * shape.num_heads * shape.head_dim * shape.num_layers
    return forward * (times.forward + 2.5)


def _elementwise(setting: Setting, fused_kernels: bool) -> float:
    """Bytes a token and block of one forward pass."""
    shape = setting.shape
    norm = _NORM_FUSED if fused_kernels else _NORM[shape.norm]
    queries = (shape.num_heads + shape.num_kv_heads) * shape.head_dim
    turned = (_ROTARY_FUSED if fused_kernels else _ROTARY) * queries if shape.positions == "rope" else 0
    written_out = _WRITTEN_OUT if shape.activation in _WRITTEN_OUT_NAMES else _PLAIN_ACTIVATION
    activation = (_GATED if shape.gated_mlp else written_out) * shape.intermediate_size
    scores = _EAGER_SCORE * shape.num_heads * setting.seq_len if setting.attention == "eager" else 0
    dropped = 2 * _DROPOUT * (shape.hidden_dropout > 0)
    stream = norm + _RESIDUAL + dropped
    wide = 2 * stream + _RECAST * 6 if setting.kbit_upcast else stream
    return wide * shape.hidden_size + turned + activation + scores


def _loss_bytes(setting: Setting) -> float:
    if setting.shape.task != "causal_lm":
        return 0.0
    return float(_LOSS[setting.loss]) * setting.shape.vocab_size


def _pairs(setting: Setting, times: Passes, *, fused: bool) -> tuple[float, float]:
    """Bytes and operations a token of the low-rank pairs; backward moves twice as much."""
    adapter = setting.adapter
    if adapter is None or not adapter.targets:
        return 0.0, 0.0
    adapted = [each for each in setting.shape.linears if each.name in adapter.targets]
    into, out = (_PAIR_IN_FUSED, _PAIR_OUT_FUSED) if fused else (_PAIR_IN, _PAIR_OUT)
    wide = 1.0 if fused else 1 + (adapter.dropout > 0) * 0.4  # a mask drawn, stored and applied
    sizes = sum(wide * into * each.in_features + out * each.out_features for each in adapted)
    flops = 2.0 * adapter.rank * sum(each.in_features + each.out_features for each in adapted)
    layers = setting.shape.num_layers
    return layers * (times.forward + _BACKWARD) * sizes, layers * (times.forward + 2) * flops


def _weight_bytes(setting: Setting) -> float:
    """What one pass reads of the weights: matters only where few tokens are multiplied."""
    width = _PACKED.get(setting.quantisation, WIDTH[setting.weights_dtype])
    return width * setting.shape.num_layers * setting.shape.block_linear_params


def _unpacked_bytes(setting: Setting) -> float:
    """A packed weight is read, written in 2 bytes and read again by the product, each pass anew."""
    if setting.quantisation == "none":
        return 0.0
    packed = _PACKED[setting.quantisation]
    return (packed + 2.0) * setting.shape.num_layers * setting.shape.block_linear_params


def _launches(setting: Setting, moved: float, fused_kernels: bool, fused_pairs: bool) -> float:
    adapter = setting.adapter
    a_pair = _LAUNCHES_PAIR_FUSED if fused_pairs else _LAUNCHES_PAIR
    pairs = a_pair * len(adapter.targets) if adapter else 0
    return setting.shape.num_layers * moved * (_LAUNCHES[fused_kernels] + pairs)
