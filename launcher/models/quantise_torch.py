"""Frozen weights packed into 4 or 8 bits by bitsandbytes (Dettmers et al. 2023, arXiv:2305.14314)."""

import importlib.util
from typing import Any

import torch

from launcher.errors import HardwareError, Problem
from launcher.models.options import ModelOptions

# A classification head is new and trains: it must not be packed. Transformers finds only a language head.
_NEW_HEADS = ("classifier", "pre_classifier", "score", "pooler")


def quantisation(options: ModelOptions, *, task: str, compute_dtype: torch.dtype) -> Any:
    """What `from_pretrained` needs to pack the linear layers; heads and embeddings stay as they are.

    The storage type is bytes: a backend that would divide packed weights is refused beforehand.
    Raises HardwareError where bitsandbytes is missing.
    """
    from transformers import BitsAndBytesConfig

    if importlib.util.find_spec("bitsandbytes") is None:
        raise HardwareError(
            Problem(
                where="model.load_in_4bit" if options.load_in_4bit else "model.load_in_8bit",
                what="packed weights need bitsandbytes, which is not installed here",
                right="bitsandbytes 0.46 or newer",
                type="pip install 'finetune-launcher[qlora]', or pip install bitsandbytes",
            )
        )
    kept = [*_NEW_HEADS] if task == "classification" else None
    if options.load_in_8bit:
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=kept)
    return BitsAndBytesConfig(
        llm_int8_skip_modules=kept,
        load_in_4bit=True,
        bnb_4bit_quant_type=options.bnb_4bit_quant_type,
        bnb_4bit_use_double_quant=options.bnb_4bit_use_double_quant,
        bnb_4bit_compute_dtype=compute_dtype,
    )


def keep_packing(model: torch.nn.Module) -> None:
    """No layer may repack its 4-bit weights for the CPU's own kernel.

    bitsandbytes 0.50 does so in place at the first evaluation on a CPU with AVX-512 BF16: the weights are
    then others than those that were loaded, and some shapes are refused. A card is not concerned.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            setattr(module, "support_avx512bf16_for_cpu", False)  # noqa: B010 (torch types what is assigned)
