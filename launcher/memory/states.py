"""What the optimizer keeps between steps, the gradients, and what a step needs for a moment."""

from launcher.memory.breakdown import Term
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, ranks_of

_MOMENTS = {
    "adamw_fused": 2,
    "adamw_foreach": 2,
    "adamw_loop": 2,
    "sgd": 0,
    "sgd_momentum": 1,
}
# bitsandbytes holds states of tensors below 4,096 elements, and of embeddings, in fp32 (optim/optimizer.py).
# DeepSpeed's default `sub_group_size`, which this launcher's stage 3 keeps.
SUB_GROUP_ELEMENTS = 1_000_000_000
_EIGHT_BIT = ("adamw_8bit", "paged_adamw_8bit")
_PAGED = ("paged_adamw", "paged_adamw_8bit")


def state_bytes(setting: Setting, sizes: Sizes) -> int:
    """Bytes of one rank's optimizer states before offloading.

    AdamW: two moments in the type of what it steps on. 8-bit: a byte each and an fp32 scale for 256
    elements (arXiv:2110.02861), fp32 for embeddings. Adafactor: fp32 row and column means of a matrix,
    about P (1/rows + 1/columns) (arXiv:1804.04235).
    """
    share = ranks_of(setting) if setting.sharding.optimizer_states else 1
    trained = sizes.trained
    if setting.optimizer in _EIGHT_BIT:
        whole = _embedding(setting, sizes)
        return int(2 * (trained - whole) * (1 + 4 / 256) + 8 * whole) // share
    if setting.optimizer == "adafactor":
        return _adafactor(setting, sizes) // share
    moments = 2 if setting.optimizer == "paged_adamw" else _MOMENTS[setting.optimizer]
    return moments * state_width(setting, sizes) * trained // share


def state_width(setting: Setting, sizes: Sizes) -> int:
    """Bytes of one moment's element: the type of the parameter that the optimizer sees."""
    if setting.sharding_kind.startswith("zero"):
        return 4
    return sizes.trained_bytes


def _embedding(setting: Setting, sizes: Sizes) -> int:
    is_open = sizes.trains_base and sizes.trained == setting.shape.num_params
    return setting.shape.word_embedding_params if is_open else 0


def _adafactor(setting: Setting, sizes: Sizes) -> int:
    if not sizes.trains_base:
        return 4 * sizes.trained // max(1, (setting.adapter.rank if setting.adapter else 1))
    shape = setting.shape
    lines = sum(each.in_features + each.out_features for each in shape.linears) * shape.num_layers
    return 4 * (lines + 2 * shape.vocab_size + shape.hidden_size * (2 * shape.num_layers + 2))


def state_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """The states that stay on the card: none where they are offloaded or paged out under pressure."""
    if setting.sharding.offload_optimizer:
        return []
    held = state_bytes(setting, sizes)
    name = "optimizer states (paged)" if setting.optimizer in _PAGED else "optimizer states"
    if setting.optimizer in _PAGED:
        # Managed memory: the driver counts none of it as allocated by torch.
        return []
    return [Term(name=name, num_bytes=held, formula=f"{setting.optimizer}")] if held else []


def gradient_width(setting: Setting, sizes: Sizes) -> int:
    """Bytes of a gradient's element: that of the weight which autograd sees."""
    if sizes.has_masters:
        return sizes.weight_bytes
    return sizes.trained_bytes


def divides_gradients(setting: Setting) -> bool:
    """ZeRO-1 too keeps its own part only, unless several micro batches add up (deepspeed 0.19.8)."""
    return setting.sharding.gradients or (
        setting.sharding_kind == "zero1" and setting.accumulation_steps == 1
    )


def gradient_bytes(setting: Setting, sizes: Sizes) -> int:
    """All gradients that one rank keeps until the step.

    ZeRO-1/2 keep the gradients whole of which a part lies in the rank's partition: the first rank's may be
    smaller than the embedding (deepspeed 0.19.8, stage_1_and_2.py, `get_flat_partition`: narrowed views).
    """
    if setting.optimizer_in_backward:
        return 0
    share = ranks_of(setting) if divides_gradients(setting) else 1
    held = sizes.trained // share
    if share > 1 and setting.sharding_kind in ("zero1", "zero2"):
        held = max(held, _embedding(setting, sizes))
    return held * gradient_width(setting, sizes)


def tied_gradient(setting: Setting, sizes: Sizes) -> list[Term]:
    """A tied matrix's gradient comes from the embedding and from the head, and is the sum of both.

    Autograd holds the head's until the embedding's is there (torch/csrc/autograd/input_buffer.cpp).
    """
    if not (setting.shape.tied and sizes.trains_base and setting.shape.task == "causal_lm"):
        return []
    extra = 2 * gradient_width(setting, sizes) * setting.shape.word_embedding_params
    return [Term(name="tied gradients", num_bytes=extra, formula="2 x dtype x V h: two parts of one sum")]


def step_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """What the step itself needs beside weights, gradients and states.

    torch's foreach AdamW materialises sqrt(v) of every parameter in one list (torch/optim/adamw.py,
    `exp_avg_sq_sqrt = torch._foreach_sqrt(...)`): one more element a parameter; measured at 10P for pure
    bf16, 20P/N for fp32 shards (Mistral-7B 72.435e9 against 72.417e9). The loop does so one parameter at a
    time, the fused kernel not at all.
    """
    if setting.sharding.offload_optimizer or setting.optimizer_in_backward:
        return []
    share = ranks_of(setting) if setting.sharding.optimizer_states else 1
    terms: list[Term] = []
    if setting.optimizer == "adamw_foreach":
        elements = sizes.trained // share
        if setting.sharding_kind == "zero3":
            elements = min(elements, SUB_GROUP_ELEMENTS)
        extra = elements * state_width(setting, sizes)
        terms.append(Term(name="foreach temporary", num_bytes=extra, formula="sqrt(v) of all at once"))
    if setting.optimizer in ("adamw_loop", "adafactor"):
        largest = min(_largest(setting, sizes), sizes.trained) // share
        factor = 2 if setting.optimizer == "adafactor" else 1
        extra = factor * largest * state_width(setting, sizes)
        terms.append(Term(name="step temporary", num_bytes=extra, formula="largest parameter"))
    if setting.sharding_kind.startswith("zero"):
        terms.append(_flattened(setting, sizes))
    return terms


def _flattened(setting: Setting, sizes: Sizes) -> Term:
    """DeepSpeed flattens its part of the gradients and casts it to fp32; stage 3 a sub-group at a time."""
    elements, width = sizes.trained // ranks_of(setting), 8
    if setting.sharding_kind == "zero3":
        elements, width = min(elements, SUB_GROUP_ELEMENTS), 4
    formula = f"{width} p / ranks, a sub-group's at most"
    return Term(name="flattened gradients", num_bytes=width * elements, formula=formula)


def _largest(setting: Setting, sizes: Sizes) -> int:
    """Elements of the largest trained parameter."""
    linears = [each.weight_params for each in setting.shape.linears]
    if sizes.trains_base:
        return max([setting.shape.word_embedding_params, *linears])
    return max(1, sizes.trained // max(1, setting.shape.num_layers))
