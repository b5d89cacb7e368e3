"""Logits and loss: bytes at the end of the forward pass and the start of the backward pass."""

from launcher.memory.breakdown import Term
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes


def loss_terms(setting: Setting, sizes: Sizes, *, forward: bool = False) -> list[Term]:
    """Everything between the last block and the loss, by implementation. Classification heads: nothing.

    plain: log-softmax's fp32 result, the gradient handed to it and its own gradient (3 x 4 bytes); 2 more
    where the caller still holds half-precision logits, 4 where it holds fp32 ones. `forward`: at the end of
    the forward pass the logits, their fp32 copy and the result (labels are shifted, logits are not).
    Measured 14V (Mistral-7B: 734,724 a token
    = 2Lh + 14V + 6h + 4) and 16V (kbit-prepared on a T4). fused on materialised logits: measured 8V
    (Llama-3-8B 1,304,494 = 2Lh + 8V + 4h): half logits, an fp32 pass, half gradients.
    """
    if setting.shape.task != "causal_lm":
        return _classifier(setting, sizes)
    tokens, vocabulary = sizes.tokens, setting.shape.vocab_size
    terms = [_final_norm(setting, sizes)]
    if setting.loss == "plain" and setting.compiled and not setting.logits_upcast:
        terms += _compiled_chunks(setting, sizes)
    elif setting.loss == "plain":
        width = _forward_width(setting, sizes) if forward else _plain_width(setting, sizes)
        terms.append(_term("logits and loss", width * vocabulary * tokens, f"{width} V T"))
    elif setting.loss == "fused":
        width = _fused_width(setting, sizes)
        terms.append(_term("logits and loss", width * vocabulary * tokens, f"{width} V T"))
    else:
        terms += _chunked(setting, sizes)
    return terms


def _term(name: str, num_bytes: float, formula: str) -> Term:
    return Term(name=name, num_bytes=int(num_bytes), formula=formula)


def holds_frozen_casts(setting: Setting, sizes: Sizes) -> bool:
    """Whether frozen weights are wider than what autocast computes with."""
    frozen = not sizes.trains_base and not setting.pure and setting.quantisation == "none"
    return frozen and sizes.weight_bytes > sizes.compute_bytes


def head_copy(setting: Setting, sizes: Sizes) -> list[Term]:
    """The head's fp32 weight in the compute type: autocast's copy, or the chunked loss's own."""
    is_trained = sizes.trains_base and sizes.trained_bytes > sizes.compute_bytes and not sizes.has_masters
    is_cast = is_trained or holds_frozen_casts(setting, sizes)
    # ZeRO-3's linear function lets its copy go when the product is there; the chunked loss has its own.
    is_let_go = setting.sharding_kind == "fsdp1" or (
        setting.sharding_kind == "zero3" and setting.loss == "plain"
    )
    if setting.shape.task != "causal_lm" or setting.pure or not is_cast or is_let_go:
        return []
    head = setting.shape.vocab_size * setting.shape.hidden_size
    return [_term("head weight copy", sizes.compute_bytes * head, "c V h")]


def logit_bytes(setting: Setting, sizes: Sizes) -> int:
    """Bytes of one logit as the head gives it: fp32 only where an fp32 head computes without autocast."""
    if setting.kbit_upcast and setting.precision == "fp16":
        return 4
    return sizes.compute_bytes


def _plain_width(setting: Setting, sizes: Sizes) -> int:
    """fp32 inside where the model upcasts, or where autocast runs the loss in fp32 (torch.amp's op list).

    Accelerate turns an autocast model's outputs into fp32: they are held so where the model itself does
    not (GPTBigCode 4-bit: 16V, 12V with the fused loss; pure bf16: 8V).
    """
    logit = logit_bytes(setting, sizes)
    in_fp32 = _is_in_fp32(setting, logit)
    held = logit if setting.logits_upcast or setting.pure else 4
    return (12 if in_fp32 else 3 * logit) + (held if setting.output_held else 0)


def _is_in_fp32(setting: Setting, logit: int) -> bool:
    return setting.logits_upcast or not setting.pure or logit == 4


def _forward_width(setting: Setting, sizes: Sizes) -> int:
    """The logits, an fp32 copy where they are narrower, and log-softmax's result."""
    logit = logit_bytes(setting, sizes)
    if not _is_in_fp32(setting, logit):
        return 2 * logit
    return logit + (8 if logit < 4 else 4)


def _compiled_chunks(setting: Setting, sizes: Sizes) -> list[Term]:
    """A compiled loss over chunks of materialised half logits recomputes the softmax: the logits stay.

    A trained head's gradient is summed over chunks: the sum and one chunk's.
    """
    vocabulary, c = setting.shape.vocab_size, sizes.compute_bytes
    terms = [_term("logits and loss", c * vocabulary * sizes.tokens, f"{c} V T")]
    if sizes.trains_base:
        head = vocabulary * setting.shape.hidden_size
        terms.append(_term("head gradient", 2 * c * head, "2 x c V h: the sum and one chunk's"))
    return terms


def _fused_width(setting: Setting, sizes: Sizes) -> int:
    """Half logits and gradients in place, an fp32 pass where the model upcasts (measured 8V).

    Without upcast measured on GPTBigCode: 6V in pure bf16 (logits, their shifted copy, gradients), 12V
    under autocast (fp32 outputs held).
    """
    if setting.logits_upcast:
        return 4 * sizes.compute_bytes
    return 3 * sizes.compute_bytes if setting.pure else 12


def _final_norm(setting: Setting, sizes: Sizes) -> Term:
    """The last norm's fp32 copy (or input) and its output, which the head reads."""
    h = setting.shape.hidden_size
    is_wide = not setting.fused_norm if setting.shape.norm == "rms" else not setting.pure
    width = 4 if is_wide else sizes.residual_bytes
    handed_on = sizes.compute_bytes
    if setting.sharding_kind == "zero3" and not setting.pure:  # saved as it comes, see `keeps_inputs`
        handed_on = 4 if setting.shape.norm == "layer" else sizes.residual_bytes
    total = width + handed_on
    return _term("last hidden state", total * h * sizes.tokens, f"{total} h T")


def _chunked(setting: Setting, sizes: Sizes) -> list[Term]:
    """One chunk's logits at a time: fp32, a half copy; gradients of hidden state and head at once.

    losses/cross_entropy_torch.py keeps the hidden state's gradient, and the head's in fp32 where it trains.
    Liger's fused linear loss cuts T tokens into about V/h chunks, so a chunk holds about h T logits.
    """
    vocabulary, h = setting.shape.vocab_size, setting.shape.hidden_size
    rows = setting.loss_chunk_tokens or max(1, sizes.tokens * h // vocabulary)
    rows = min(rows, sizes.tokens)
    wide = 4 + sizes.compute_bytes
    terms = [_term("logits and loss", wide * vocabulary * rows, f"{wide} V x {rows} tokens")]
    terms.append(_term("hidden gradient", sizes.compute_bytes * h * sizes.tokens, "c h T"))
    if sizes.trains_base:
        head = vocabulary * h
        # chunked: the sum in fp32, one chunk's in the compute type and its fp32 copy
        width = 8 + sizes.compute_bytes if setting.loss == "chunked" else sizes.compute_bytes
        terms.append(_term("head gradient", width * head, f"{width} V h"))
    return terms


def _classifier(setting: Setting, sizes: Sizes) -> list[Term]:
    if setting.shape.is_decoder:
        return [_final_norm(setting, sizes)]
    return []


def evaluation_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """Logits of one evaluation batch, reduced at once: an fp32 copy where they are not, and its softmax."""
    if setting.shape.task != "causal_lm":
        return []
    rows = (setting.eval_batch or setting.micro_batch) * setting.seq_len
    vocabulary = setting.shape.vocab_size
    if setting.loss in ("chunked", "linear_fused"):
        rows = min(rows, setting.loss_chunk_tokens or max(1, rows * setting.shape.hidden_size // vocabulary))
        wide = 4 + sizes.compute_bytes
        return [_term("evaluation logits", wide * vocabulary * rows, f"{wide} V x chunk")]
    width = _forward_width(setting, sizes)
    return [_term("evaluation logits", width * vocabulary * rows, f"{width} V T")]
