"""What one block saves for its backward pass, and what that pass needs on top, in bytes a token.

Read off the kernels' autograd formulas (torch/tools/autograd/derivatives.yaml) and the modelling code of
transformers 5.24: each line names a tensor that some backward formula reads. h hidden size, f
intermediate size, a heads, d head size, k key/value heads, s length; c bytes of the compute type, r of the
stream between blocks. Checked against live bytes of real blocks on a CPU (LLaMA, k = a/4, without the
block's input): LoRA in bf16 12f + 24h, full fp32 under autocast 12f + 31.8h, full bf16 12f + 23.8h.
"""

from dataclasses import dataclass

from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes
from launcher.models.shape import LinearShape

# Tanh-GELU written in Python (transformers/activations.py: NewGELUActivation, BloomGelu's forward aside).
_COMPOSED_GELU = ("gelu_new", "gelu_fast", "gelu_python", "quick_gelu")
DISENTANGLED_BYTES = 11
PROBABILITIES = "attention probabilities"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One kind of saved tensor: bytes a token, and why."""

    name: str
    per_token: float
    formula: str


def norms_saved(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """Two norms. RMS: an fp32 copy of a half stream (`x.to(float32)`, read by pow and mul), and the
    normalised values where the norm's weight trains. Layer norm: its input.

    A first norm's input is the block's own where they have one type, and a checkpoint already; norms after
    the sublayers read sums, which nobody else keeps.
    """  # noqa: D205
    shape, r = setting.shape, sizes.residual_bytes
    h = shape.hidden_size
    own = 1 if setting.recomputes and not shape.is_post_norm else 2
    if shape.norm == "layer" and r == 2 and not setting.pure:
        return (Line(name="norm inputs", per_token=8 * h, formula="2 x 4 h: autocast's fp32 copies"),)
    if shape.norm == "layer":
        return (Line(name="norm inputs", per_token=own * r * h, formula=f"{own} r h"),)
    if setting.fused_norm:
        return (_fused_norms(setting, sizes),)
    if setting.compiled:
        return (Line(name="norm inputs", per_token=own * r * h, formula=f"{own} r h: norms are recomputed"),)
    copies = 2 if r == 2 else own
    lines = [Line(name="norm inputs", per_token=copies * 4 * h, formula=f"{copies} x 4 h (fp32)")]
    if sizes.trains_base:
        lines.append(Line(name="normalised values", per_token=2 * r * h, formula="2 r h: the weights train"))
    return tuple(lines)


def _fused_norms(setting: Setting, sizes: Sizes) -> Line:
    """One kernel for norm and rotation saves its half input: r h for the second norm.

    Beside LoRA pairs measured 4 h more: bf16 Llama-3-8B 12f + 23h a token, Mistral-7B with repeated
    heads 12f + 26h (over quantised weights, whose pairs are fused too, 2 h less); none more in full
    training (Mistral-7B 12f + 18h).
    """
    h = setting.shape.hidden_size
    more = 0 if sizes.trains_base else 4
    width = sizes.residual_bytes + more
    return Line(name="norm inputs", per_token=width * h, formula=f"{width} h (fused kernels)")


def casts_inputs(sizes: Sizes) -> bool:
    """Whether autocast copies every linear layer's input: it keeps copies of weights only."""
    return sizes.residual_bytes > sizes.compute_bytes


def keeps_inputs(setting: Setting) -> bool:
    """Whether every linear layer, frozen ones too, saves its input as it comes, and no cast copies.

    DeepSpeed's stage 3 puts a function of its own in the place of `F.linear` for the whole process
    (deepspeed 0.19.8, zero/linear.py, `LinearFunctionForZeroStage3`). GPT-2's blocks call addmm instead.
    """
    return setting.sharding_kind == "zero3" and setting.shape.model_type != "gpt2"


def _kept_input(
    setting: Setting, sizes: Sizes, linears: list[LinearShape], *, is_saved: bool, width: int
) -> float:
    """The common input once, unless something saves it anyway; LoRA pairs in a wider type a copy each."""
    features = linears[0].in_features
    kept = 0 if is_saved else width * features
    if setting.adapter is None:
        return kept
    beside = sum(linear.name in setting.adapter.targets for linear in linears)
    copies = sizes.trained_bytes if sizes.trained_bytes > width else 0
    mask = 1 + width if setting.adapter.dropout else 0
    return kept + beside * (copies + mask) * features


def _normed_bytes(setting: Setting, sizes: Sizes) -> int:
    """An element of what a norm hands on: layer norm under autocast gives fp32."""
    return 4 if setting.shape.norm == "layer" and not setting.pure else sizes.residual_bytes


def _input_bytes(
    setting: Setting,
    sizes: Sizes,
    linears: list[LinearShape],
    *,
    is_saved: bool = False,
    is_cast: bool,
    width: int = 0,
) -> float:
    """Bytes a token that linear layers with one common input save of it.

    A trained weight saves its input: one tensor, or a copy each where autocast casts (`is_cast`); nothing
    more where it is saved anyway (`is_saved`). A frozen weight saves nothing, but each LoRA pair beside it
    its own copy, as peft casts to the pair's type, then autocast to the compute type; with dropout a byte
    an element for the mask. `width`: bytes of an element as it comes, where that is no norm's output.
    """
    c, features = sizes.compute_bytes, linears[0].in_features
    if keeps_inputs(setting):
        width = width or (c if is_saved else _normed_bytes(setting, sizes))
        return _kept_input(setting, sizes, linears, is_saved=is_saved, width=width)
    if setting.adapter is None:
        if is_cast:
            return len(linears) * c * features
        return 0 if is_saved else sizes.activation_bytes * features
    beside = [linear for linear in linears if linear.name in setting.adapter.targets]
    mask = 1 if setting.adapter.dropout else 0
    if not beside:
        return 0
    is_uncast = setting.pure or setting.precision == "fp32"
    if is_uncast and sizes.trained_bytes == sizes.weight_bytes:
        return (0 if is_saved else c * features) + len(beside) * mask * features * (1 + c)
    width = max(c, sizes.trained_bytes) if setting.pure else c
    return len(beside) * (width + mask) * features


def _split(setting: Setting, kind: str) -> tuple[list[LinearShape], list[LinearShape]]:
    """The linear layers of a kind that read the block's stream, and the last one."""
    found = [linear for linear in setting.shape.linears if linear.kind == kind]
    return found[:-1], found[-1:]


def _is_eager(setting: Setting, sizes: Sizes) -> bool:
    """Whether the probabilities are there: eager attention, or sdpa's plain formula.

    sdpa falls back to it in fp32 with grouped heads as they come, where no mask has them repeated
    (torch 2.13, aten/native/transformers: neither flash nor the memory-efficient kernel takes them).
    """
    is_grouped = setting.shape.num_kv_heads < setting.shape.num_heads and not setting.repeats_kv
    return setting.attention == "eager" or (
        setting.attention == "sdpa" and sizes.compute_bytes == 4 and is_grouped
    )


def attention_saved(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """Inputs of the projections, query, key, value, the output, and what the kernel itself keeps."""
    shape, c = setting.shape, sizes.compute_bytes
    into, out = _split(setting, "attention")
    query = shape.num_heads * shape.head_dim
    repeated = setting.repeats_kv or _is_eager(setting, sizes)
    pair = query if repeated else shape.num_kv_heads * shape.head_dim
    width = sizes.activation_bytes if not _is_eager(setting, sizes) else c
    after = _input_bytes(setting, sizes, out, is_saved=True, is_cast=False) if out else 0
    lines = [
        Line(
            name="attention inputs",
            per_token=_input_bytes(setting, sizes, into, is_cast=casts_inputs(sizes)) if into else 0,
            formula="c h for each projection that saves its input",
        ),
        Line(name="query, key, value", per_token=width * (query + 2 * pair), formula="c (a + 2k) d"),
        Line(
            name="attention output", per_token=c * query + after, formula="c a d, and the projection's copy"
        ),
    ]
    if len(into) == 1 and shape.positions == "rope" and not _is_eager(setting, sizes):
        held = width * (query + shape.num_kv_heads * shape.head_dim)
        lines.append(
            Line(name="unrotated query, key", per_token=held, formula="c (a + k) d: value is a view")
        )
    if _is_eager(setting, sizes):
        lines.append(_probabilities(setting, sizes))
    else:
        if setting.attention == "sdpa" and setting.variable_length:
            mask = c * setting.seq_len
            lines.append(Line(name="attention mask", per_token=mask, formula="c s: added to the scores"))
        lines.append(Line(name="softmax sums", per_token=4 * shape.num_heads, formula="4 a (fp32 logsumexp)"))
    return (*lines, *_dropout_masks(setting))


def _dropout_masks(setting: Setting) -> tuple[Line, ...]:
    """native_dropout saves a byte an element; attention's projection and the MLP's output have one each."""
    if not setting.shape.hidden_dropout:
        return ()
    return (Line(name="dropout masks", per_token=2 * setting.shape.hidden_size, formula="2 x 1 h"),)


def _softmax_bytes(setting: Setting, sizes: Sizes) -> int:
    """Softmax's result: fp32 by request (RMS-norm families) or by autocast, else in the compute type."""
    is_half = setting.pure and setting.shape.norm == "layer" and sizes.compute_bytes == 2
    return 2 if is_half else 4


def _probabilities(setting: Setting, sizes: Sizes) -> Line:
    """Eager attention: softmax saves its result, dropout a mask, the product with v its input."""
    shape, c = setting.shape, sizes.compute_bytes
    softmax = _softmax_bytes(setting, sizes)
    dropped = bool(shape.attention_dropout)
    product = c if c != softmax or dropped else 0
    total = softmax + product + (1 if dropped else 0)
    if "deberta" in shape.model_type:
        # Content-to-position and position-to-content scores and their gathers; read off the trace of
        # deberta-v3-base under autocast (4 x 256 tokens), not derived.
        total += DISENTANGLED_BYTES
    return Line(
        name=PROBABILITIES,
        per_token=total * shape.num_heads * setting.seq_len,
        formula=f"{total} a s: softmax, dropout's mask, the product's input",
    )


def attention_backward(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """Eager: at the softmax's backward, gradients of its output and input, and the half one between.

    Live bytes of real blocks on a CPU give 12 a s in all; the card's allocator was measured at 14 to 16
    (TinyLlama, SmolLM2 in fp16) and 16 to 18 over an fp32 stream.
    """
    shape, c = setting.shape, sizes.compute_bytes
    query, pair = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    if not _is_eager(setting, sizes):
        # gradients of output, q, k, v; flash accumulates q's in fp32 (flash_bwd: dq_accum)
        extra = c * (2 * query + 2 * pair) + 4 * query
        return (Line(name="attention gradients", per_token=extra, formula="c (2a + 2k) d + 4 a d"),)
    softmax = _softmax_bytes(setting, sizes)
    width = 2 * softmax + (c if c != softmax else 0) + (2 if sizes.activation_bytes > c else 0)
    total = width * shape.num_heads * setting.seq_len
    return (Line(name="attention gradients", per_token=total, formula=f"{width} a s: around the softmax"),)


def mlp_saved(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """Inputs of the projections, what the activation keeps, the input of the last projection."""
    into, out = _split(setting, "mlp")
    inner, why = _inner_bytes(setting, sizes)
    cast_out = setting.shape.activation in _COMPOSED_GELU and sizes.compute_bytes < 4
    width = 4 if cast_out and not setting.pure else sizes.activation_bytes
    product = _input_bytes(setting, sizes, out, is_cast=cast_out, width=width) if out else 0
    return (
        Line(
            name="MLP inputs",
            per_token=_input_bytes(setting, sizes, into, is_cast=casts_inputs(sizes)) if into else 0,
            formula="c h for each projection that saves its input",
        ),
        Line(name="MLP inner values", per_token=inner, formula=why),
        Line(name="MLP product", per_token=product, formula="c f: input of the last projection"),
    )


def _inner_bytes(setting: Setting, sizes: Sizes) -> tuple[float, str]:
    """What the activation saves. Gated: gate, its activation, up. Composed tanh-GELU: its input, the tanh,
    1 + tanh and half the input; under autocast `pow` makes some of them fp32.

    A compiled block recomputes the activation from gate and up.
    """  # noqa: D205
    shape, c = setting.shape, sizes.activation_bytes
    f = shape.intermediate_size
    if shape.gated_mlp:
        count = 2 if setting.compiled else 3
        return count * c * f, f"{count} c f: gate, up{'' if setting.compiled else ', activation'}"
    if shape.activation in _COMPOSED_GELU and not setting.compiled:
        wide = 4 * c if c == 4 or setting.pure else 14
        return wide * f, f"{wide} f: the composed activation's factors"
    return c * f, "c f: the activation's input"


def mlp_backward(setting: Setting, sizes: Sizes, mlp: tuple[Line, ...]) -> tuple[Line, ...]:
    """At the product's backward the last layer's input is gone; its gradient and the factors' are there."""
    shape, c = setting.shape, sizes.activation_bytes
    f = shape.intermediate_size
    if shape.gated_mlp:
        # A compiled backward pass fuses activation and product: gradients of the product, gate and up.
        extra, why = 3 * c * f, "3 c f: of the product, the activation, up"
    elif shape.activation in _COMPOSED_GELU:
        extra, why = (c + 8) * f, "(c + 8) f: the chain in fp32"
    else:
        extra, why = 2 * c * f, "2 c f: of the activation's output and input"
    return (*mlp[:-1], Line(name="MLP gradients", per_token=extra, formula=why))
