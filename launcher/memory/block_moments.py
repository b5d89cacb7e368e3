"""One block at work: what it saves, and what is alive at each bad moment of its passes, in bytes a token.

Norms before each sublayer (LLaMA, GPT-2): the MLP's product or the softmax decides. Norms after each
sublayer (BERT): the end of a block's forward pass does, where two sums and both norms' outputs stand
beside the MLP's wide values; with checkpointing that moment comes again in the backward pass.
"""

from dataclasses import dataclass

from launcher.memory.activations import (
    Line,
    attention_backward,
    attention_saved,
    casts_inputs,
    keeps_inputs,
    mlp_backward,
    mlp_saved,
    norms_saved,
)
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes

Lines = tuple[Line, ...]


def _per_token(lines: Lines) -> float:
    return sum(line.per_token for line in lines)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a block has alive at one moment of its backward pass.

    `gradient_share`: the part of the block's own weights whose gradients are there by then.
    `reaches_adapters`: the backward pass has come to this block's adapters, if there are any.
    """

    name: str
    lines: Lines
    gradient_share: float = 0.0
    reaches_adapters: bool = True

    @property
    def per_token(self) -> float:
        """Bytes a token."""
        return _per_token(self.lines)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block's saved tensors, the moments of its backward pass, and what its forward pass needs beside.

    `forward`: at the worst moment, beside what is saved; `alone`: the same where nothing is saved.
    """

    saved: Lines
    moments: tuple[Moment, ...]
    forward: Lines
    alone: Lines

    @property
    def saved_per_token(self) -> float:
        """Bytes a token that stay until this block's backward pass."""
        return _per_token(self.saved)

    @property
    def backward_per_token(self) -> float:
        """Bytes a token at the worst moment of this block's backward pass, saved tensors included."""
        return max(moment.per_token for moment in self.moments)


def block_of(setting: Setting, sizes: Sizes) -> Block:
    """Everything about one block of this setting."""
    norms, attention, mlp = (make(setting, sizes) for make in (norms_saved, attention_saved, mlp_saved))
    return Block(
        saved=_real(norms, attention, mlp),
        moments=_moments(setting, sizes, norms, attention, mlp),
        forward=_forward(setting, sizes),
        alone=_alone(setting, sizes),
    )


def _real(*parts: Lines) -> Lines:
    return tuple(line for part in parts for line in part if line.per_token > 0)


def _moments(
    setting: Setting, sizes: Sizes, norms: Lines, attention: Lines, mlp: Lines
) -> tuple[Moment, ...]:
    """The MLP's product and the attention; first, behind a post-norm block's recomputation, its end.

    By the MLP's product a post-norm block has let its last norm's input go, by the attention both.
    """
    stream, is_post = _stream(setting, sizes), setting.shape.is_post_norm
    down, above = _shares(setting)
    product = Moment(
        name="MLP",
        lines=_real(
            _one_norm(setting, sizes) if is_post else norms,
            attention,
            mlp_backward(setting, sizes, mlp),
            stream,
        ),
        gradient_share=down,
        reaches_adapters=_adapts_mlp(setting),
    )
    scores = Moment(
        name="attention",
        lines=_real(() if is_post else norms, attention, attention_backward(setting, sizes), stream),
        gradient_share=above,
    )
    if not (is_post and setting.recomputes):
        return (product, scores)
    end = _real(norms, attention, mlp, _forward(setting, sizes), stream)
    return (Moment(name="recomputed", lines=end, reaches_adapters=False), product, scores)


def _adapts_mlp(setting: Setting) -> bool:
    wide = {linear.name for linear in setting.shape.linears if linear.kind == "mlp"}
    return setting.adapter is not None and bool(wide & {*setting.adapter.targets})


def _shares(setting: Setting) -> tuple[float, float]:
    """Of a block's weights: those behind the MLP's activation, and those behind the attention."""
    linears = setting.shape.linears
    wide = [linear.num_params for linear in linears if linear.kind == "mlp"]
    attention = [linear.num_params for linear in linears if linear.kind == "attention"]
    whole = max(1, setting.shape.block_params)
    return sum(wide[-1:]) / whole, sum([*wide, *attention[-1:]]) / whole


def _stream(setting: Setting, sizes: Sizes) -> Lines:
    """The gradient that comes in; re-entrant checkpointing also holds the recomputed output."""
    width = sizes.residual_bytes * setting.shape.hidden_size
    held = width if setting.reentrant and setting.recomputes else 0
    return (
        Line(name="stream gradient", per_token=width, formula="r h"),
        Line(name="recomputed output", per_token=held, formula="r h, held by re-entrant checkpointing"),
    )


def _one_norm(setting: Setting, sizes: Sizes) -> Lines:
    width = sizes.residual_bytes * setting.shape.hidden_size
    return (Line(name="norm inputs", per_token=width, formula="r h: the first norm's"),)


def _forward(setting: Setting, sizes: Sizes) -> Lines:
    """Beside what a block saves: at a post-norm block's last norm, its output, the first norm's output (an
    input of the MLP and of the sum), the dropped-out product, and the MLP's activation where none saves it.

    transformers 5.24, modeling_bert.py: `feed_forward_chunk` and `BertOutput.forward` hold them as locals.
    Other blocks end in a sum: two streams more and the product.
    """  # noqa: D205
    shape, r, c = setting.shape, sizes.residual_bytes, sizes.compute_bytes
    h = shape.hidden_size
    if not shape.is_post_norm:
        return (Line(name="block's outputs", per_token=(3 * r + 2 * c) * h, formula="(3 r + 2 c) h"),)
    saves_product = any(line.name == "MLP product" and line.per_token for line in mlp_saved(setting, sizes))
    saves_input = keeps_inputs(setting) or (sizes.trains_base and not casts_inputs(sizes))
    return _real(
        (
            Line(name="norm outputs", per_token=(1 if saves_input else 2) * r * h, formula="2 r h, or 1"),
            Line(name="dropped-out product", per_token=c * h, formula="c h"),
            Line(
                name="MLP activation",
                per_token=0 if saves_product else sizes.activation_bytes * shape.intermediate_size,
                formula="c f, where nothing saves it",
            ),
        )
    )


def _alone(setting: Setting, sizes: Sizes) -> Lines:
    """The worst moment of a block that saves nothing: its input, and the MLP's values or the last norm's.

    Post-norm: at the activation the first norm's output and two wide values; at the last norm one wide
    value, both norms' outputs, the sum and the product. Else two or three wide values and two streams.
    """
    shape, r, c = setting.shape, sizes.residual_bytes, sizes.compute_bytes
    h, f = shape.hidden_size, shape.intermediate_size
    scores = (4 + c) * shape.num_heads * setting.seq_len if setting.attention == "eager" else 0
    if not shape.is_post_norm:
        count = 3 if shape.gated_mlp else 2
        held = count * c * f + c * h + 2 * r * h
        wide = Line(name="block at work", per_token=held, formula=f"{count} c f + c h + 2 r h")
    elif 2 * c * f + r * h >= c * f + (3 * r + c) * h:
        wide = Line(name="block at work", per_token=2 * c * f + r * h, formula="2 c f + r h")
    else:
        wide = Line(name="block at work", per_token=c * f + (3 * r + c) * h, formula="c f + (3 r + c) h")
    return _real((wide, Line(name="attention scores", per_token=scores, formula="(4 + c) a s")))
