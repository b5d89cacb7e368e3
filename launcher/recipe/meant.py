"""What a value that a key does not take was probably meant to be: `10%` is 0.1, `fa2` is a kernel's name."""

import re
from typing import Any, get_args

from pydantic.fields import FieldInfo

# Names of elsewhere for choices that are called otherwise here.
OTHER_VALUES = {
    **dict.fromkeys(("bfloat16", "bf16-mixed", "bf16-true", "bf16_full"), "bf16"),
    **dict.fromkeys(("float16", "half", "16", "16-mixed", "amp", "mixed"), "fp16"),
    **dict.fromkeys(("float32", "32", "32-true", "full", "no", "none", "false"), "fp32"),
    "fp8": "bf16",
    **dict.fromkeys(
        ("adamw", "adam", "adamw_hf", "adamw_apex_fused", "adamw_torch_xla"), "adamw_torch_fused"
    ),
    **dict.fromkeys(("lion", "lamb", "muon", "galore_adamw"), "adamw_torch_fused"),
    **dict.fromkeys(("adamw_bnb_8bit", "adam8bit", "adamw8bit", "lion_8bit"), "adamw_8bit"),
    **dict.fromkeys(("paged_adamw", "paged_adamw_32bit", "paged_adam"), "paged_adamw_8bit"),
    **dict.fromkeys(("cosine_with_restarts", "cosine_with_min_lr", "cosine_annealing"), "cosine"),
    **dict.fromkeys(("wsd", "warmup_stable_decay"), "constant_with_warmup"),
    **dict.fromkeys(
        ("fa2", "flash", "flash_attn", "flash_attention", "flash_attention_3"), "flash_attention_2"
    ),
    **dict.fromkeys(("xformers", "flex_attention", "memory_efficient"), "sdpa"),
    **dict.fromkeys(
        ("sft", "lm", "clm", "text-generation", "causal-lm", "generation", "pretrain"), "causal_lm"
    ),
    **dict.fromkeys(("summarization", "translation", "chat", "instruction", "seq2seq"), "causal_lm"),
    "gpu": "cuda",
    **dict.fromkeys(("truncate", "truncation", "right"), "keep_head"),
    **dict.fromkeys(("assistant", "response", "answer", "output"), "completions"),
    **dict.fromkeys(("seq_cls", "sequence_classification", "text-classification", "cls"), "classification"),
}
_BETWEEN = "\u201c\u201d\u2018\u2019'\" \t"
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def meant_number(typed: str, field: FieldInfo) -> str:
    """The number that `typed` was meant to be, where the key takes it; else nothing."""
    kinds = _kinds(field.annotation)
    if re.fullmatch(r"[-+]?[\d.]+([eE][-+]?\d+)?", typed.strip()):
        return ""  # it is a number already: another one is wanted
    if not kinds & {int, float}:
        return ""
    found = _number(typed.strip(_BETWEEN), whole=float not in kinds)
    if found is None or not _within(found, field) or (float not in kinds and found != int(found)):
        return ""
    return f"{int(found)}" if float not in kinds else f"{found:g}"


def _number(text: str, *, whole: bool) -> float | None:
    text = text.replace("\uff0c", ",")
    if whole and re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        return float(text.replace(",", ""))
    if re.fullmatch(r"[-+]?\d+,\d+([eE][-+]?\d+)?", text):
        text = text.replace(",", ".")
    match = re.fullmatch(r"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d{1,2})?)\s*(%|[kKmMgG]|/\s*\d+|\s[a-z]+)?", text)
    if match is None:
        return None
    value, behind = float(match[1]), (match[2] or "").strip()
    if behind == "%":
        return value / 100
    if behind.startswith("/"):
        by = int(behind[1:])
        return value / by if by else None
    return value * _UNITS.get(behind.lower(), 1)


def _within(value: float, field: FieldInfo) -> bool:
    for bound in field.metadata:
        low, above = getattr(bound, "ge", None), getattr(bound, "gt", None)
        high, below = getattr(bound, "le", None), getattr(bound, "lt", None)
        if low is not None and value < low or above is not None and value <= above:
            return False
        if high is not None and value > high or below is not None and value >= below:
            return False
    return True


def _kinds(annotation: Any) -> set[Any]:
    inner = get_args(annotation)
    return {annotation} if not inner else {kind for each in inner for kind in _kinds(each)}
