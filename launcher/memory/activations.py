"""What one block saves for its backward pass, and what that pass needs on top, in bytes a token.

Read off the kernels' autograd formulas (torch/tools/autograd/derivatives.yaml) and the modelling code of
transformers 5.24: each line names a tensor that some backward formula reads. h hidden size, f
intermediate size, a heads, d head size, k key/value heads, s length; c bytes of the compute type, r of the
stream between blocks. Checked against live bytes of real blocks: LLaMA, LoRA in bf16 autocast 12f + 24h.
"""

from dataclasses import dataclass

from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes

# Tanh-GELU written in Python (NewGELUActivation): `pow` runs in fp32 under autocast.
_COMPOSED_GELU = ("gelu_new", "gelu_fast", "gelu_python")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One kind of saved tensor: bytes a token, and why."""

    name: str
    per_token: float
    formula: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block's saved tensors, and the most that its backward pass holds beside its input."""

    saved: tuple[Line, ...]
    backward: tuple[Line, ...]

    @property
    def saved_per_token(self) -> float:
        """Bytes a token that stay until this block's backward pass."""
        return sum(line.per_token for line in self.saved)

    @property
    def backward_per_token(self) -> float:
        """Bytes a token at the worst moment of this block's backward pass, saved tensors included."""
        return sum(line.per_token for line in self.backward)


def block_of(setting: Setting, sizes: Sizes) -> Block:
    """Saved tensors and the worst moment: the MLP's product, or the attention's softmax."""
    attention, mlp = _attention(setting, sizes), _mlp(setting, sizes)
    norms = _norms(setting, sizes)
    saved = tuple(line for line in (*norms, *attention, *mlp) if line.per_token)
    in_mlp = (*norms, *attention, *_mlp_backward(setting, sizes, mlp))
    in_attention = (*norms, *attention, *_attention_backward(setting, sizes))
    worst = max(in_mlp, in_attention, key=lambda lines: sum(line.per_token for line in lines))
    stream = _stream(setting, sizes)
    return Block(saved=saved, backward=tuple(line for line in (*worst, *stream) if line.per_token))


def _stream(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """The gradient that comes in; re-entrant checkpointing also holds the recomputed output."""
    width = sizes.residual_bytes * setting.shape.hidden_size
    held = width if setting.reentrant and setting.checkpointing == "full" else 0
    return (
        Line(name="stream gradient", per_token=width, formula="r h"),
        Line(name="recomputed output", per_token=held, formula="r h, held by re-entrant checkpointing"),
    )


def _casts(sizes: Sizes) -> bool:
    """Whether autocast copies every linear layer's input: it keeps copies of weights only."""
    return sizes.residual_bytes > sizes.compute_bytes


def _norms(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """Two norms. RMS: fp32 copy of a half stream (`x.to(float32)`, read by pow and mul), and the
    normalised value where the norm's weight trains. Layer norm: its input.

    The first norm's input is the block's input where they have one type. Post-norm blocks (encoders)
    save the two sums that are normalised.
    """
    shape, r = setting.shape, sizes.residual_bytes
    h = shape.hidden_size
    if shape.norm == "layer":
        return (Line(name="norm inputs", per_token=2 * r * h, formula="2 r h"),)
    if setting.fused_norm:
        # 2h: the second norm's half-precision input; 4h more measured with fused norm and rotation kernels
        # (LoRA on Llama-3-8B 12f + 23h, on Mistral-7B with repeated heads 12f + 26h a token).
        return (Line(name="norm inputs", per_token=r * h + 4 * h, formula="r h + 4 h, fused kernels"),)
    copies = 2 if r == 2 else (1 if setting.checkpointing == "full" else 2)
    lines = [Line(name="norm inputs", per_token=copies * 4 * h, formula=f"{copies} x 4 h (fp32)")]
    if sizes.trains_base:
        lines.append(Line(name="normalised values", per_token=2 * r * h, formula="2 r h: the weights train"))
    return tuple(lines)


def _linear_inputs(
    setting: Setting, sizes: Sizes, names: list[str], features: int, *, has_copy: bool
) -> float:
    """Bytes a token of what the linear layers `names` save of their common input.

    A trained weight saves its input, once where no cast copies it (`has_copy` then: it is saved already).
    A frozen one saves nothing; each LoRA pair saves a copy in the type that it computes in.
    """
    c = sizes.compute_bytes
    if setting.adapter is None:
        if _casts(sizes) and not has_copy:
            return len(names) * c * features
        return 0 if has_copy else c * features
    beside = [name for name in names if name in setting.adapter.targets]
    if not beside:
        return 0
    width = max(c, sizes.trained_bytes) if setting.pure else c
    is_copied = sizes.trained_bytes != sizes.residual_bytes or _casts(sizes)
    mask = features if setting.adapter.dropout else 0
    if not is_copied:
        return (0 if has_copy else c * features) + len(beside) * mask
    return len(beside) * (width * features + mask)


def _attention(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    shape, c = setting.shape, sizes.compute_bytes
    names = [linear.name for linear in shape.linears if linear.kind == "attention"]
    into, out = names[:-1], names[-1:]
    heads = shape.num_heads * shape.head_dim
    pair = (
        heads if setting.repeats_kv or setting.attention == "eager" else shape.num_kv_heads * shape.head_dim
    )
    lines = [
        Line(
            name="attention inputs",
            per_token=_linear_inputs(setting, sizes, into, shape.hidden_size, has_copy=False),
            formula="c h for each projection that saves its input",
        ),
        Line(name="query, key, value", per_token=c * (heads + 2 * pair), formula="c (a + 2k) d"),
        Line(
            name="attention output",
            per_token=c * heads + _linear_inputs(setting, sizes, out, heads, has_copy=True),
            formula="c a d, and the output projection's copy",
        ),
    ]
    if setting.attention == "eager":
        lines.append(_probabilities(setting, sizes))
    else:
        lines.append(Line(name="softmax sums", per_token=4 * shape.num_heads, formula="4 a (fp32 logsumexp)"))
    return (*lines, *_dropout_masks(setting))


def _dropout_masks(setting: Setting) -> tuple[Line, ...]:
    """native_dropout saves a byte an element; attention's projection and the MLP's output have one each."""
    if not setting.shape.hidden_dropout:
        return ()
    h = setting.shape.hidden_size
    return (Line(name="dropout masks", per_token=2 * h, formula="2 x 1 h"),)


def _probabilities(setting: Setting, sizes: Sizes) -> Line:
    """Eager attention: softmax saves its fp32 result, the product with v a copy in the compute type."""
    shape, c = setting.shape, sizes.compute_bytes
    softmax = 2 if setting.pure and shape.norm == "layer" and c == 2 else 4
    copy = c if softmax != c else 0
    dropout = 1 + softmax if shape.attention_dropout else 0
    total = (softmax + copy + dropout) * shape.num_heads * setting.seq_len
    return Line(
        name="attention probabilities",
        per_token=total,
        formula=f"{softmax + copy + dropout} a s: softmax, its copy, dropout",
    )


def _attention_backward(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    """Eager: at the softmax's backward, gradients of its output and input in fp32, and the half one."""
    shape, c = setting.shape, sizes.compute_bytes
    heads = shape.num_heads * shape.head_dim
    if setting.attention != "eager":
        # gradients of output, q, k, v; flash accumulates q's in fp32 (flash_bwd: dq_accum)
        extra = c * (2 * heads + 2 * shape.num_kv_heads * shape.head_dim) + 4 * heads
        return (Line(name="attention gradients", per_token=extra, formula="c (2a + 2k) d + 4 a d"),)
    per_score = 8 + (c if c < 4 else 0)
    return (
        Line(
            name="attention gradients",
            per_token=per_score * shape.num_heads * setting.seq_len,
            formula=f"{per_score} a s: of the softmax's output and input",
        ),
    )


def _mlp(setting: Setting, sizes: Sizes) -> tuple[Line, ...]:
    shape, c = setting.shape, sizes.compute_bytes
    h, f = shape.hidden_size, shape.intermediate_size
    names = [linear.name for linear in shape.linears if linear.kind == "mlp"]
    into, out = names[:-1], names[-1:]
    product = _linear_inputs(setting, sizes, out, f, has_copy=False)
    inputs = Line(
        name="MLP inputs",
        per_token=_linear_inputs(setting, sizes, into, h, has_copy=False),
        formula="c h for each projection that saves its input",
    )
    if shape.gated_mlp:
        inner = Line(name="gate, up, activation", per_token=3 * c * f, formula="3 c f")
    elif shape.activation in _COMPOSED_GELU:
        wide = 16 if c == 4 else 12 + 2 * c
        inner = Line(name="activation's inner values", per_token=wide * f, formula=f"{wide} f (composed)")
    else:
        inner = Line(name="activation input", per_token=c * f, formula="c f")
    return inputs, inner, Line(name="MLP product", per_token=product, formula="c f: input of the last one")


def _mlp_backward(setting: Setting, sizes: Sizes, mlp: tuple[Line, ...]) -> tuple[Line, ...]:
    """At the product's backward the last layer's input is gone; its gradient and the factors' are there."""
    shape, c = setting.shape, sizes.compute_bytes
    f = shape.intermediate_size
    if shape.gated_mlp:
        extra, why = 3 * c * f, "3 c f: of the product, the gate's activation, up"
    elif shape.activation in _COMPOSED_GELU:
        extra, why = (12 if c == 2 else 12) * f, "12 f: the composed activation's chain in fp32"
    else:
        extra, why = 2 * c * f, "2 c f: of the activation's output and input"
    return (*mlp[:-1], Line(name="MLP gradients", per_token=extra, formula=why))
