"""Reads a row of published memory figures into a Setting: free text by its words, sizes by their columns.

What a row leaves open is filled with the default of its harness or of the libraries of its time, and said
in `assumed`; what cannot be filled makes the row unpredictable, with a reason. Nothing here is a number
that was adjusted to a figure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from row_words import card_named, count, gib, is_absent, is_rounded, length, number, product

from launcher.errors import LauncherError
from launcher.facts import ShardingFacts
from launcher.memory.setting import Adapter, Setting
from launcher.models import catalogue
from launcher.models.read_shape import shape_of
from launcher.models.shape import LinearShape, ModelShape

Row = Mapping[str, str]


class Unpredictable(Exception):  # noqa: N818
    """This row lacks something, or is of a kind that the estimate does not know."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What was measured, in GiB; None where the row does not say."""

    allocated: float | None = None
    reserved: float | None = None
    process: float | None = None
    outcome: Literal["oom", "fits", ""] = ""
    usable: float | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One row as the estimate sees it."""

    setting: Setting
    figures: Figures
    assumed: tuple[str, ...] = field(default=())


def _has(text: str, pattern: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _whole(row: Row, key: str) -> int | None:
    """A whole number; 0 and what is no number count as absent."""
    read_cell = {"seq_len": length, "n_gpus": product}.get(key, number)
    value = count(row.get(key)) if key in _COUNTS else read_cell(row.get(key))
    return int(value) or None if value is not None else None


_COUNTS = ("params_total", "trainable_params")


def _text(row: Row, *keys: str) -> str:
    return " ".join(row.get(key) or "" for key in keys)


def read(row: Row) -> Reading:
    """A row's setting and figures. Raises Unpredictable with the reason."""
    assumed: list[str] = []
    shape = _shape(row, assumed)
    micro, tokens = _batch(row, assumed)
    pure, precision, weights = _types(row, assumed)
    method, adapter = _method(row, shape, assumed)
    kind, sharding, ranks = _backend(row, assumed)
    quantisation, double = _quantisation(row, assumed)
    setting = Setting(
        shape=shape,
        method=method,
        adapter=adapter,
        micro_batch=micro,
        seq_len=tokens,
        weights_dtype=weights,
        trainable_dtype=weights,
        precision=precision,
        pure=pure,
        quantisation=quantisation,
        double_quant=double,
        kbit_upcast=_is_upcast(row, quantisation),
        optimizer=_optimizer(row, assumed),
        checkpointing=_checkpointing(row, assumed),
        attention=_attention(row, assumed),
        loss=_loss(row),
        backend=row.get("backend") or "",
        sharding_kind=kind,
        sharding=sharding,
        num_ranks=ranks,
        accumulation_steps=_accumulation(row),
        gradients_kept=_year(row) < 2023,  # torch 2.0 made zero_grad(set_to_none=True) the default
        variable_length=_is_variable(row),
        output_held=True,
        autocast_cache=True,
        evaluates=False,
        saves=False,
        loads_whole=False,
        reentrant=True,
        ddp_bucket_view=False,
        compiled=_has(row.get("compile") or "", r"^\s*(y|true|1)"),
        fused_norm=_has(_text(row, "notes", "loss_impl"), r"fused rms|rmsnorm.*kernel|fused.*norm"),
        optimizer_in_backward=_has(row.get("optimizer") or "", r"(fused|step)?.*in (the )?backward"),
        offload_activations=_has(row.get("offload") or "", r"activation"),
        context_bytes=_context(row),
        cublas_workspace_bytes=33_554_432 if _has(row.get("gpu") or "", HOPPER) else 8_519_680,
        reduce_bucket_elements=_bucket(row),
        prefetch_bucket_elements=50_000_000,
    )
    setting = _adjust(setting, row, assumed)
    return Reading(setting=setting, figures=figures_of(row), assumed=tuple(assumed))


# Compute capability 9.0 or newer by name.
HOPPER = r"\bG?H[12]00|\bH20\b|\bG?B[12]00|RTX ?50|\b50[789]0\b|RTX PRO 6000"


def _adjust(setting: Setting, row: Row, assumed: list[str]) -> Setting:
    """What follows from several columns together."""
    loss = row.get("loss_impl") or ""
    changes: dict[str, Any] = {"trainable_dtype": _trainable(setting, row)}
    if setting.sharding_kind.startswith("zero") and not _has(row.get("optimizer") or "", "foreach"):
        changes |= {"optimizer": "adamw_fused"} if setting.optimizer == "adamw_foreach" else {}
        assumed.append("DeepSpeed's FusedAdam for AdamW")
    if setting.shape.model_type == "deberta-v2":
        changes["attention"] = "eager"  # it has no other
    if setting.shape.num_experts:
        raise Unpredictable("mixture of experts: what each token's experts save is not in closed form")
    family = f"{setting.shape.model_type} {row.get('arch', '')}"
    if setting.attention == "flash" and _has(family, r"mistral|mixtral") and not _is_recent(row):
        changes["repeats_kv"] = True  # repeat_kv before flash attention until transformers 4.48
    if setting.attention == "sdpa":
        # transformers 5: grouped heads go to the kernel as they are, where no mask is used and it takes them
        is_grouped = _transformers(row) >= (5, 0) and not _has(row.get("gpu") or "", r"T4|V100|2080|Titan")
        changes["repeats_kv"] = setting.variable_length or not is_grouped
    if _has(_text(row, "source", "notes"), r"\blauncher\b|gpu.check"):
        changes |= {"output_held": False, "reentrant": False, "ddp_bucket_view": True}  # this project's step
    if setting.sharding_kind == "fsdp1" and setting.kbit_upcast:
        changes["kbit_upcast"] = False
        assumed.append("FSDP's mixed precision casts what kbit preparation made fp32")
    if _is_accelerate_fsdp(setting, row):
        changes |= {
            "weights_dtype": "float32",
            "trainable_dtype": "float32",
            "gathered_dtype": setting.weights_dtype,
        }
    if (
        setting.sharding_kind.startswith("zero")
        and setting.weights_dtype != "float32"
        and setting.adapter is None
    ):
        changes["trainable_dtype"] = "float32"
    plain_families = ("gpt_bigcode", "gpt2", "gpt_neox", "bloom", "opt", "falcon", "phi")
    is_old_head = setting.shape.model_type in plain_families and not _is_recent(row)
    if is_old_head or _has(loss, "no fp32 upcast|without upcast|not upcast"):
        changes["logits_upcast"] = False  # their own loss code, until transformers 4.48 gave all models one
    if _has(loss, r"chunk") and not _has(loss, r"linear|never|bytes"):
        # half logits of all chunks are kept, each chunk's fp32 work in turn
        changes |= {"loss": "plain", "logits_upcast": False, "output_held": False}
    return replace(setting, **changes)


def _is_recent(row: Row) -> bool:
    return _transformers(row) >= (4, 48)


def _transformers(row: Row) -> tuple[int, int]:
    """The version that the row names; (0, 0) where it names none."""
    match = re.search(r"transformers\D{0,3}(\d+)\.(\d+)", _text(row, "commit_or_date", "notes", "source"))
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


def _is_accelerate_fsdp(setting: Setting, row: Row) -> bool:
    """Accelerate makes the trained shards fp32 where mixed precision is on, and gathers in the half type."""
    full = setting.adapter is None and setting.weights_dtype != "float32"
    mixed = not setting.pure and _has(row.get("mp_scheme") or "", r"autocast|trainer|mixed|amp")
    return full and mixed and setting.sharding_kind in ("fsdp1", "fsdp2")


def _trainable(setting: Setting, row: Row) -> str:
    """Adapters are fp32 beside half weights (PEFT's autocast_adapter_dtype), unless all is pure half."""
    text = _text(row, "weights_dtype", "mp_scheme")
    if _has(text, r"lora fp32|adapter\w* fp32|fp32 (lora|adapter|master)|\+ ?fp32 master"):
        return "float32"
    if setting.adapter is None or setting.pure:
        return setting.weights_dtype
    if setting.sharding_kind.startswith("zero"):
        return setting.weights_dtype
    return "float32"


# --- the model ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Family:
    """What a family's sizes leave open."""

    pattern: str
    model_type: str
    gated: bool = True
    norm: Literal["rms", "layer"] = "rms"
    positions: Literal["rope", "learned", "alibi", "relative"] = "rope"
    fused_qkv: bool = False
    qkv_bias: bool = False
    bias: bool = False
    decoder: bool = True
    activation: str = "silu"
    max_positions: int = 0
    dropout: float = 0.0
    bare_mlp: bool = False


FAMILIES = (
    Family(r"mixtral|moe|expert", "mixtral"),
    Family(r"chatglm|glm", "chatglm", fused_qkv=True, qkv_bias=True),
    Family(r"baichuan", "baichuan", fused_qkv=True),
    Family(r"internlm2", "internlm2", fused_qkv=True),
    Family(r"qwen.?1\b|qwen1$|^qwen\b(?!.?[23])", "qwen", fused_qkv=True, qkv_bias=True),
    Family(r"qwen.?2|qwen1\.5", "qwen2", qkv_bias=True),
    Family(r"qwen.?3", "qwen3"),
    Family(r"gemma", "gemma"),
    Family(r"granite", "granite"),
    Family(
        r"bigcode|santacoder|starcoder", "gpt_bigcode", gated=False, norm="layer", positions="learned",
        fused_qkv=True, bias=True, activation="gelu_pytorch_tanh", max_positions=2048, dropout=0.1,
    ),
    Family(
        r"deberta", "deberta-v2", gated=False, norm="layer", positions="relative", bias=True,
        decoder=False, activation="gelu", dropout=0.1,
    ),
    Family(
        r"roberta|bert|electra", "bert", gated=False, norm="layer", positions="learned", bias=True,
        decoder=False, activation="gelu", max_positions=512, dropout=0.1,
    ),
    Family(
        r"gpt.?neox|pythia", "gpt_neox", gated=False, norm="layer", fused_qkv=True, bias=True,
        activation="gelu",
    ),
    Family(r"falcon", "falcon", gated=False, norm="layer", fused_qkv=True, activation="gelu"),
    Family(r"bloom", "bloom", gated=False, norm="layer", positions="alibi", fused_qkv=True, bias=True,
           activation="bloom_gelu"),
    Family(r"gpt.?2", "gpt2", gated=False, norm="layer", positions="learned", fused_qkv=True, bias=True,
           activation="gelu_new", max_positions=1024, dropout=0.1),
    Family(r"opt\b", "opt", gated=False, norm="layer", positions="learned", bias=True, activation="relu",
           max_positions=2050, dropout=0.1),
    Family(r"phi.?3", "phi3", fused_qkv=True),
    Family(r"phi", "phi", gated=False, norm="layer", bias=True, activation="gelu_new"),
    Family(r"mistral", "mistral"),
    Family(r"llama|yi\b|deepseek|smollm|vicuna|internlm", "llama"),
)  # fmt: skip


def _family(row: Row, assumed: list[str]) -> Family:
    for text in (row.get("arch") or "", row.get("model_id") or ""):
        for family in FAMILIES:
            if text and _has(text, family.pattern):
                return family
    assumed.append("a LLaMA-like block: the architecture is not named")
    return Family("", "llama")


_OTHER_MODELS = (
    (r"\bm?t5\b|\bbart|encoder.decoder|pegasus|marian|nllb", "an encoder and a decoder: not planned here"),
    (
        r"whisper|wav2vec|hubert|\bvit\b|clip|diffusion|sdxl|unet|\bvl\b|vision|llava",
        "not a model of text alone",
    ),
    (r"mamba|rwkv|\bssm\b|hyena|retnet", "no attention: its states are not in closed form"),
)


def _known_sizes(row: Row, assumed: list[str]) -> Row:
    """Sizes that the row leaves out, from the catalogue's configuration of a model of that name."""
    config = catalogue.config((row.get("model_id") or "").strip())
    if config is None:
        return row
    try:
        shape = shape_of(config, task="causal_lm" if _is_decoder(config) else "classification")
    except LauncherError:
        return row
    assumed.append("sizes of the catalogue's configuration")
    found = {
        "arch": shape.model_type,
        "hidden": str(shape.hidden_size),
        "layers": str(shape.num_layers),
        "heads": str(shape.num_heads),
        "kv_heads": str(shape.num_kv_heads),
        "head_dim": str(shape.head_dim),
        "intermediate": str(shape.intermediate_size),
        "vocab": str(shape.vocab_size),
        "tied": "yes" if shape.tied else "no",
    }
    return {**row, **{key: value for key, value in found.items() if is_absent(row.get(key))}}


def _is_decoder(config: Mapping[str, Any]) -> bool:
    return not re.search(r"bert|electra", str(config.get("model_type", "")))


def _shape(row: Row, assumed: list[str]) -> ModelShape:
    if _has(row.get("layers") or "", r"\d\s*\+\s*\d"):
        raise Unpredictable("an encoder and a decoder: not planned here")
    for pattern, reason in _OTHER_MODELS:
        if _has(_text(row, "arch", "model_id"), pattern):
            raise Unpredictable(reason)
    if any(is_absent(row.get(key)) for key in ("hidden", "layers", "heads", "vocab")):
        row = _known_sizes(row, assumed)
    sizes = {key: _whole(row, key) for key in ("hidden", "layers", "heads", "vocab")}
    missing = [key for key, value in sizes.items() if not value]
    if missing:
        raise Unpredictable(f"no {', '.join(missing)}")
    family = _family(row, assumed)
    h, layers, heads, vocab = (int(sizes[key] or 0) for key in ("hidden", "layers", "heads", "vocab"))
    head_dim = _whole(row, "head_dim") or h // heads
    kv = _whole(row, "kv_heads") or heads
    f = _whole(row, "intermediate")
    if f is None:
        f = 4 * h
        assumed.append("intermediate size 4 h")
    tied = _is_tied(row, family, h, vocab, assumed)
    total = _whole(row, "params_total")
    short = is_rounded(row.get("params_total"))
    if h % heads and not _whole(row, "head_dim"):
        raise Unpredictable(f"{heads} heads do not divide {h}")
    if heads % kv:
        raise Unpredictable(f"{kv} key and value heads do not divide {heads}")
    if family.pattern:
        shape = _built(family, row, h, layers, heads, kv, head_dim, f, vocab, tied)
        if short and total and abs(total - shape.num_params) <= 0.15 * total:
            return shape
        return _reconciled(shape, total, assumed)
    likely = [
        _built(guess, row, h, layers, heads, kv, head_dim, f, vocab, is_tied)
        for guess in (family, replace(family, gated=False, norm="layer", bias=True, activation="gelu"))
        for is_tied in (tied, not tied)
    ]
    nearest = min(likely, key=lambda each: abs(each.num_params - (total or likely[0].num_params)))
    return _reconciled(nearest, total, assumed, is_guess=True)


def _is_tied(row: Row, family: Family, h: int, vocab: int, assumed: list[str]) -> bool:
    text = row.get("tied") or ""
    if _has(text, r"^\s*(y|true|1)"):
        return True
    if _has(text, r"^\s*(no?\b|false|0)"):
        return False
    if not family.decoder:
        return False
    assumed.append("embedding and head not tied")
    return False


def _built(
    family: Family, row: Row, h: int, layers: int, heads: int, kv: int, d: int, f: int, vocab: int, tied: bool
) -> ModelShape:
    classifies = not family.decoder or _has(row.get("loss_impl") or "", r"classif")
    linears = _linears(family, h, heads * d, kv * d, f)
    norms = 2 * h * (2 if family.norm == "layer" else 1)
    head = 0 if tied or classifies else vocab * h
    if not family.decoder:
        head = h * h + h + 2 * h + 2  # pooler, classifier of two labels
    experts = 8 if family.model_type == "mixtral" else 0
    others = family.max_positions * h if family.positions == "learned" else 0
    others += 0 if family.decoder else 2 * h + 2 * h
    return ModelShape(
        model_type=family.model_type,
        task="classification" if classifies else "causal_lm",
        is_decoder=family.decoder,
        num_layers=layers,
        hidden_size=h,
        num_heads=heads,
        num_kv_heads=kv,
        head_dim=d,
        intermediate_size=f,
        vocab_size=vocab,
        max_positions=family.max_positions or None,
        tied=tied,
        gated_mlp=family.gated,
        activation=family.activation,
        norm=family.norm,
        positions=family.positions,
        linears=linears,
        block_other_params=norms,
        word_embedding_params=vocab * h,
        other_embedding_params=others,
        final_norm_params=h * (2 if family.norm == "layer" else 1) if family.decoder else 0,
        head_params=head,
        hidden_dropout=family.dropout,
        attention_dropout=family.dropout,
        num_experts=experts,
    )


def _linears(family: Family, h: int, wide: int, narrow: int, f: int) -> tuple[LinearShape, ...]:
    def linear(name: str, into: int, out: int, kind: Literal["attention", "mlp"], bias: bool) -> LinearShape:
        return LinearShape(name=name, in_features=into, out_features=out, bias=bias, kind=kind)

    bias, qkv_bias = family.bias, family.bias or family.qkv_bias
    if family.fused_qkv:
        attention = [linear("qkv", h, wide + 2 * narrow, "attention", qkv_bias)]
    else:
        outs = (("q", wide), ("k", narrow), ("v", narrow))
        attention = [linear(name, h, out, "attention", qkv_bias) for name, out in outs]
    attention.append(linear("o", wide, h, "attention", bias))
    names = ("gate", "up", "down") if family.gated else ("up", "down")
    mlp = [linear(name, h, f, "mlp", bias) for name in names[:-1]] + [linear("down", f, h, "mlp", bias)]
    return (*attention, *mlp)


def _reconciled(
    shape: ModelShape, total: int | None, assumed: list[str], *, is_guess: bool = False
) -> ModelShape:
    """The published count decides: what is missing is put beside the embedding, or the MLP is another."""
    if not total or abs(total - shape.num_params) <= 0.002 * total:
        return shape
    if abs(total - shape.num_params) <= 0.1 * total:
        missing = total - shape.num_params
        assumed.append(f"{missing:+,} parameters that the sizes do not give, spread over the blocks")
        return replace(shape, block_other_params=shape.block_other_params + missing // shape.num_layers)
    if shape.num_experts:
        return shape
    if is_guess and abs(total - shape.num_params) <= 0.6 * total:
        missing = total - shape.num_params
        assumed.append(f"{missing:+,} parameters that a LLaMA-like block would not have")
        return replace(shape, block_other_params=shape.block_other_params + missing // shape.num_layers)
    raise Unpredictable(f"{shape.num_params:,} parameters by its sizes, {total:,} published")


# --- how it is trained -------------------------------------------------------------------------------


def _batch(row: Row, assumed: list[str]) -> tuple[int, int]:
    micro, tokens = _whole(row, "micro_batch"), _whole(row, "seq_len")
    if not tokens:
        raise Unpredictable("no sequence length")
    if not micro:
        micro = 1
        assumed.append("micro batch 1")
    return micro, tokens


def _accumulation(row: Row) -> int:
    """More than one where a shell expression stands for the number."""
    text = row.get("grad_accum") or "1"
    return 2 if "$" in text else max(1, int(number(text) or 1))


def _is_variable(row: Row) -> bool:
    text = row.get("seq_mode") or ""
    if _has(text, r"packed|fixed|full.?length|exactly|max_length|dummy"):
        return False
    return _has(text, r"pad|dynamic|truncat|variable|longest")


_TYPES = (
    (r"fp32|float32|\bf32\b", "float32"),
    (r"bf16|bfloat16", "bfloat16"),
    (r"fp16|float16|half", "float16"),
)
Dtype = Literal["float32", "bfloat16", "float16"]


def _named_type(text: str) -> Dtype | None:
    found = [
        (match.start(), name)
        for pattern, name in _TYPES
        if (match := re.search(pattern, text, re.IGNORECASE))
    ]
    return min(found)[1] if found else None  # type: ignore[return-value]


def _types(row: Row, assumed: list[str]) -> tuple[bool, Literal["fp32", "bf16", "fp16"], Dtype]:
    """(nothing is cast, autocast's type, type of the weights)."""
    scheme, held = row.get("mp_scheme") or "", row.get("weights_dtype") or ""
    if _has(f"{scheme} {held}", r"fp8|float8|mxfp|nvfp"):
        raise Unpredictable("products in 8 bits: what they keep is not in closed form")
    weights = _named_type(held)
    computes = _named_type(scheme)
    if weights is None:
        weights = computes or "bfloat16"
        assumed.append(f"weights in {weights}")
    pure = _has(scheme, r"none|pure") or (not scheme and True)
    if not scheme:
        assumed.append("no autocast")
    names = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
    precision = names[weights if pure or computes is None else computes]
    return pure, precision, weights  # type: ignore[return-value]


def _quantisation(row: Row, assumed: list[str]) -> tuple[Any, bool]:
    text, method = row.get("weight_quant") or "", row.get("method") or ""
    if is_absent(text) and _has(method, r"qlora|4.?bit|nf4"):
        text = "nf4"
        assumed.append("nf4: the method's own name")
    double = _has(row.get("double_quant") or "", r"^\s*(y|true|1)") or _has(text, r"double")
    is_whole = _has(
        text, r"^\s*(none|no)\b|^\W*(bf16|fp16|fp32|bfloat16|float16|float32|(16|32).?bits?|full)\W*$"
    )
    if is_absent(text) or is_whole:
        return "none", False
    if _has(text, r"\b[1-3].?bits?\b|int[1-3]\b|1\.58|fp8|float8|aqlm|quip"):
        raise Unpredictable(f"weights in {text}: not a layout that is known")
    bits = 8 if _has(text, r"int8|8.?bit|llm\.int8") else 4
    if _has(text, r"gptq|awq|hqq|eetq|own kernels"):
        return f"gptq{bits}", False
    if bits == 8:
        return "int8", False
    return ("fp4" if _has(text, r"\bfp4") else "nf4"), double


def _is_upcast(row: Row, quantisation: str) -> bool:
    """Whether `prepare_model_for_kbit_training` made everything else fp32."""
    text = _text(row, "weights_dtype", "notes", "mp_scheme")
    if quantisation == "none" or _has(text, r"no fp32 upcast|without.*kbit|no kbit"):
        return False
    return _has(text, r"k.?bit")


TARGETS = {
    "q": r"\bq(_proj)?\b",
    "k": r"\bk(_proj)?\b",
    "v": r"\bv(_proj)?\b",
    "o": r"\bo(_proj)?\b|\bdense\b|c_proj",
    "qkv": r"c_attn|query_key_value|w_pack|qkv|wqkv",
    "gate": r"gate(_proj)?|\bw1\b|\bmlp\b",
    "up": r"up(_proj)?|\bw2\b|\bmlp\b",
    "down": r"down(_proj)?|\bw3\b|\bmlp\b|mlp c_proj",
}


def _targets(row: Row, shape: ModelShape) -> tuple[str, ...]:
    text = row.get("lora_targets") or ""
    names = [linear.name for linear in shape.linears]
    if _has(text, r"\ball\b|all.linear"):
        return tuple(names)
    found = [name for name in names if _has(text, TARGETS[name])]
    if "qkv" in names and "qkv" not in found and _has(text, r"\b[qkv]\b|default|^\s*$|recipe"):
        found.append("qkv")
    if not found:
        found = [name for name in names if name in ("q", "v", "qkv")]
    return tuple(found)


_UNKNOWN_METHODS = (
    (r"galore", "GaLore's projected states and gradients are not modelled"),
    (r"\blisa", "LISA's changing set of trained blocks is not modelled"),
    (r"llama.?pro", "LLaMA-Pro's added blocks are not modelled"),
    (r"partially frozen|freeze", "which parts are frozen is not said"),
    (r"boft|\bbone\b|reft|vera\b|fourier|unsloth", "this adapter's own activations are not modelled"),
    (r"distill|dpo|ppo|grpo|rlhf|orpo|kto", "more than one model at work"),
    (
        r"bit.?fit|\blayer.?norm|head only|linear probe|apollo|badam|lora.?fa\b",
        "what trains, or keeps its activations, is not in closed form",
    ),
)


def _method(row: Row, shape: ModelShape, assumed: list[str]) -> tuple[str, Adapter | None]:
    text = row.get("method") or ""
    for pattern, reason in _UNKNOWN_METHODS:
        if _has(text, pattern):
            raise Unpredictable(reason)
    trained = _whole(row, "trainable_params")
    if _has(text, r"lora|dora"):
        return "lora", _lora(row, shape, trained, text, assumed)
    if _has(text, r"p.?tuning|prefix|prompt|ia3|\badapter"):
        return _small(row, shape, trained, text, assumed)
    if _has(text, r"full|fine.?tun|sft|dense|\bf?ft\b|pre.?train"):
        return "full", None
    if trained and trained < 0.9 * shape.num_params:
        return "lora", _lora(row, shape, trained, text, assumed)
    if not text.strip():
        assumed.append("every weight trains")
        return "full", None
    raise Unpredictable(f"method {text!r} is not known")


def _lora(row: Row, shape: ModelShape, trained: int | None, text: str, assumed: list[str]) -> Adapter:
    rank = _whole(row, "lora_r")
    if rank is None:
        rank = 8
        if not trained:
            assumed.append("rank 8")
    rank = min(rank, shape.hidden_size)
    targets = _targets(row, shape)
    beside = [linear for linear in shape.linears if linear.name in targets]
    pairs = shape.num_layers * sum(rank * (each.in_features + each.out_features) for each in beside)
    copies = 0
    if _has(text, r"embed|lm_head"):
        copies = 2 * shape.vocab_size * shape.hidden_size
        pairs, trained = trained or pairs, None
    return Adapter(
        method="lora",
        num_params=trained or pairs,
        rank=rank,
        targets=targets,
        dropout=_dropout(row),
        head_copy_params=copies,
    )


def _dropout(row: Row) -> float:
    match = re.search(r"dropout[ =:]*(0?\.\d+)", _text(row, "notes", "method", "lora_targets"))
    return float(match.group(1)) if match else 0.0


def _small(
    row: Row, shape: ModelShape, trained: int | None, text: str, assumed: list[str]
) -> tuple[str, Adapter]:
    virtual = int(number(re.sub(r"v2", "", text)) or 20)
    method = (
        "prefix"
        if _has(text, r"prefix|p.?tuning.?v2")
        else "prompt"
        if _has(text, r"prompt|p.?tuning")
        else "adapter"
    )
    count = trained or virtual * shape.hidden_size * (2 * shape.num_layers if method == "prefix" else 1)
    if not trained:
        assumed.append(f"{count:,} trained parameters")
    return method, Adapter(
        method=method, num_params=count, virtual_tokens=virtual if method != "adapter" else 0
    )


def _optimizer(row: Row, assumed: list[str]) -> Any:
    text = row.get("optimizer") or ""
    in_backward = _has(text, r"in (the )?backward")
    eight, paged = _has(text, r"8.?bit"), _has(text, r"paged")
    if paged:
        return "paged_adamw_8bit" if eight else "paged_adamw"
    if eight:
        return "adamw_8bit"
    if _has(text, r"adafactor"):
        return "adafactor"
    if _has(text, r"\bsgd"):
        return "sgd_momentum" if _has(text, r"moment") else "sgd"
    if _has(text, r"foreach"):
        return "adamw_foreach"
    if _has(text, r"fused") and not in_backward or _has(_text(row, "source"), r"torchtune"):
        return "adamw_fused"  # torchtune's recipes set fused=True
    if _transformers(row) >= (5, 0) and not _has(text, r"torch adamw|adamw_torch\b"):
        return "adamw_fused"  # its default with torch 2.8 or newer
    if _has(text, r"loop|for-loop|hf adamw|adamw_hf") or _year(row) < 2023:
        return "adamw_loop"  # torch 2.0 (March 2023) made foreach the default
    if not _has(text, r"adam"):
        assumed.append("AdamW")
    return "adamw_foreach"


def _year(row: Row) -> int:
    """The year of the figures; the present where nothing is said and no old card was used."""
    match = re.search(r"\b(20[12]\d)\b", _text(row, "commit_or_date"))
    if match:
        return int(match.group(1))
    version = re.search(r"torch\D{0,3}(\d)\.\d", _text(row, "commit_or_date", "notes"))
    if version:
        return 2020 if version.group(1) == "1" else 2024
    return 2022 if _has(_text(row, "gpu"), r"V100|P100|K80|Titan") else 2024


def _checkpointing(row: Row, assumed: list[str]) -> Any:
    text = row.get("grad_ckpt") or ""
    if _has(text, r"select"):
        return "selective"
    if _has(text, r"^\s*(y|true|1|on|full|re-?entrant|non.?re|unsloth|enabled)"):
        return "full"
    if not text.strip():
        assumed.append("no checkpointing")
    return "none"


def _attention(row: Row, assumed: list[str]) -> Any:
    text = row.get("attn") or ""
    if _has(text, r"eager|math|naive"):
        return "eager"
    if _has(text, r"sdpa|flex|memory.eff|xformers|cudnn"):
        return "sdpa"
    if _has(text, r"flash|fa.?[23]"):
        return "flash"
    if _year(row) < 2024:
        assumed.append("eager attention: the default of its time")
        return "eager"
    assumed.append("sdpa attention")
    return "sdpa"


def _loss(row: Row) -> Any:
    text = row.get("loss_impl") or ""
    if _has(text, r"liger|fused.?linear|linear.?fused|linear.*cross|cut.?cross|cce"):
        return "linear_fused"
    if _has(text, r"triton|unsloth|fused"):
        return "fused"
    return "chunked" if _has(text, r"chunk") else "plain"


NOTHING = ShardingFacts(optimizer_states=False, gradients=False, parameters=False)


def _backend(row: Row, assumed: list[str]) -> tuple[Any, ShardingFacts, int]:
    text, ranks = row.get("backend") or "", _whole(row, "n_gpus") or 1
    offload = _offload(row, text)
    if _has(text, r"device_map|model.?parallel|pipeline|naive|tensor.?parallel|\btp\b|\bpp\b|megatron"):
        raise Unpredictable("layers spread over cards by another tool: which card holds what is not said")
    if _has(
        text, r"colossal|gemini|alpa|\bjax|\bxla|\btpu|paddle|mindspore|\bmlx\b|context.?parallel|ulysses"
    ):
        raise Unpredictable(f"backend {text!r} is not known")
    stage = 0
    if _has(text, r"zero|deepspeed|\bds\b|\bz[123]\b"):
        match = re.search(r"(?:zero|stage|z)\D{0,8}([0123])", text, re.IGNORECASE)
        stage = int(match.group(1)) if match else (3 if _has(text, r"infinity") else 2)
        if not match:
            assumed.append(f"ZeRO stage {stage}")
    if _has(text, r"ddp") and stage == 2:
        stage = 0
    if stage:
        facts = ShardingFacts(optimizer_states=True, gradients=stage > 1, parameters=stage > 2, **offload)
        return f"zero{stage}", facts, ranks
    if _has(text, r"fsdp|fully.?shard"):
        if _has(text, r"no_shard"):
            return "none", NOTHING, ranks
        kind = (
            "fsdp2"
            if _has(text, r"fsdp.?2|fsdp.?v2|fully_shard\b(?!.*fsdp1)") and not _has(text, r"fsdp.?1")
            else "fsdp1"
        )
        whole = _has(text, r"grad_op|shard_grad")
        return (
            kind,
            ShardingFacts(optimizer_states=True, gradients=True, parameters=not whole, **offload),
            ranks,
        )
    if ranks > 1 and not _has(text, r"ddp|data.?parallel|multi"):
        assumed.append("DDP")
    return "none", replace(NOTHING, **offload), ranks


def _offload(row: Row, backend: str) -> dict[str, Any]:
    """What the cell or the backend's own name says of host memory: optimizer states, weights, or both."""
    text = row.get("offload") or ""
    named = _has(backend, r"offload|infinity") and is_absent(text)
    if named:
        both = _has(backend, r"fsdp|zero\D{0,8}3|stage\D{0,8}3|infinity")
        return {"offload_optimizer": True, "offload_parameters": both}
    if is_absent(text) or _has(text, r"^\s*(no|none|false)\b"):
        return {"offload_optimizer": False, "offload_parameters": False}
    if _has(text, r"activation") and not _has(text, r"optim|param|weight|state"):
        return {"offload_optimizer": False, "offload_parameters": False}
    parameters = _has(text, r"param|^\s*cpu offload|fsdp|weights|model")
    only_states = _has(text, r"optim|state")
    plain = not parameters and not only_states  # "cpu", "yes", "nvme": all that this backend can
    states = only_states or plain or _has(text, r"^\s*cpu offload|fsdp") or _has(backend, "fsdp")
    return {
        "offload_optimizer": states or (parameters and _has(backend, "fsdp")),
        "offload_parameters": parameters or (plain and not _has(backend, r"(zero|stage)\D{0,8}[12]")),
    }


def _bucket(row: Row) -> int:
    return 200_000_000 if _has(_text(row, "source"), r"swift|factory") else 500_000_000


def _context(row: Row) -> int:
    match = re.search(r"(\d+(?:\.\d+)?)\s*MiB (?:CUDA )?context", _text(row, "mem_measure", "notes"))
    if match:
        return int(float(match.group(1)) * 2**20)
    # Measured on a T4 with torch 2.14; other cards' contexts are the estimate's default.
    return 141 * 2**20 if _has(row.get("gpu") or "", r"\bT4\b") else 0


# --- what was measured -------------------------------------------------------------------------------


def figures_of(row: Row) -> Figures:
    """The row's figures by kind; a figure of an unstated measure is none of them."""
    allocated, reserved = (
        number(row.get("peak_alloc_gib")) or None,
        number(row.get("peak_reserved_gib")) or None,
    )
    process, measure = number(row.get("nvsmi_gib")) or None, row.get("mem_measure") or ""
    value = gib(row)
    outcome = _outcome(row)
    if (
        value is not None
        and outcome != "oom"
        and not _has(row.get("figure_kind") or "", r"^\s*(max.?)?fits?")
    ):
        measure = measure if measure.strip() else row.get("figure_kind") or ""
        if (
            allocated is None
            and _has(measure, r"alloc|active|tracemalloc")
            and not _has(measure, "unallocated")
        ):
            allocated = value
        elif reserved is None and _has(measure, r"reserved") and not _has(measure, r"process"):
            reserved = value
        elif process is None and _has(measure, r"nvidia.?smi|pynvml|nvml|process"):
            process = value
        elif allocated is None and _has(measure, r"^torch peak"):
            allocated = value
    if outcome == "oom":
        allocated = reserved = process = None
    return Figures(
        allocated=allocated, reserved=reserved, process=process, outcome=outcome, usable=usable_gib(row)
    )


def _outcome(row: Row) -> Literal["oom", "fits", ""]:
    kind = row.get("figure_kind") or ""
    if _has(kind, r"\boom|fail|out.?of.?memory|crash|not.?fit|does.?n.?t fit"):
        return "oom"
    if _has(kind, r"peak|fit|ok\b|success|alloc|reserved|used|max"):
        return "fits"
    return ""


def usable_gib(row: Row) -> float | None:
    """What torch sees of the card: exact where the row says MiB, else 98.9 % of the round size."""
    text = row.get("gpu") or ""
    match = re.search(r"(\d{4,6})\s*MiB", text)
    if match:
        return float(match.group(1)) / 1024
    size = number(row.get("gpu_mem_gib")) or None
    if size is None:
        found = re.search(r"(\d{1,3})\s*(?:GB|GiB|G\b)", text)
        size = float(found.group(1)) if found else None
    if size is None:
        known = card_named(text)
        return None if known is None else known.usable_bytes / 2**30
    if size > 1000:  # MiB, as nvidia-smi prints it
        return size / 1024
    return size if size != round(size) else 0.989 * size  # A100-80GB: 79.15 GiB of 80
