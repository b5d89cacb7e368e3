"""Variables that notes on the web recommend and that do something else, or nothing. One line each."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Belief:
    """A variable with values that are a mistake; `truth` says what it really does, `instead` what to type."""

    name: str
    truth: str
    instead: str
    mistaken: Callable[[str], bool] = bool


def _is_zero(value: str) -> bool:
    return value.strip() == "0"


def _is_on(value: str) -> bool:
    return value.strip() not in ("", "0")


def _has_tiny_split(value: str) -> bool:
    found = re.search(r"max_split_size_mb:(\d+)", value)
    return found is not None and int(found.group(1)) < 64


_DOES_NOTHING = "no library reads it: it does nothing"
BELIEFS = (
    Belief(
        name="NVIDIA_TF32_OVERRIDE",
        truth="0 switches TF32 off in every library, also where the recipe asks for it; 1 changes nothing",
        instead="unset NVIDIA_TF32_OVERRIDE; the recipe decides: training.tf32=auto",
        mistaken=_is_zero,
    ),
    Belief(
        name="FLASH_ATTENTION",
        truth=_DOES_NOTHING,
        instead="unset FLASH_ATTENTION; the recipe decides: model.attn_implementation=flash_attention_2",
    ),
    Belief(
        name="USE_FLASH_ATTENTION",
        truth="it is read when torch is built, not when it runs: it does nothing here",
        instead="unset USE_FLASH_ATTENTION; the recipe decides: model.attn_implementation=flash_attention_2",
    ),
    Belief(
        name="FORCE_CUDA",
        truth="it is read when extensions are built; training never reads it",
        instead="unset FORCE_CUDA",
    ),
    Belief(
        name="CUDA_LAUNCH_BLOCKING",
        truth="every kernel is waited for: for finding a fault, much slower in training",
        instead="unset CUDA_LAUNCH_BLOCKING",
        mistaken=_is_on,
    ),
    Belief(
        name="PYTORCH_NO_CUDA_MEMORY_CACHING",
        truth="every tensor is a cudaMalloc: for finding leaks, many times slower",
        instead="unset PYTORCH_NO_CUDA_MEMORY_CACHING",
    ),
    Belief(
        name="PYTORCH_CUDA_ALLOC_CONF",
        truth="blocks that may not be split below so few MiB fragment the memory more, and slow it down",
        instead="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        mistaken=_has_tiny_split,
    ),
    Belief(
        name="NCCL_SHM_DISABLE",
        truth="cards without peer access then talk through the network stack: many times slower",
        instead="unset NCCL_SHM_DISABLE; enlarge /dev/shm instead",
        mistaken=_is_on,
    ),
    Belief(
        name="TOKENIZERS_PARALLELISM",
        truth="false makes tokenising use one core; the warning it silences is harmless",
        instead="unset TOKENIZERS_PARALLELISM",
        mistaken=lambda value: value.strip().lower() in ("0", "false", "no", "off"),
    ),
    Belief(
        name="TRANSFORMERS_CACHE",
        truth="transformers 5 no longer reads it: models go to HF_HOME",
        instead="export HF_HOME=FOLDER; unset TRANSFORMERS_CACHE",
    ),
    Belief(
        name="PYTORCH_PRETRAINED_BERT_CACHE",
        truth="nothing reads it any more: models go to HF_HOME",
        instead="export HF_HOME=FOLDER; unset PYTORCH_PRETRAINED_BERT_CACHE",
    ),
)


def mistaken(environ: Mapping[str, str]) -> Iterator[tuple[str, Belief]]:
    """Every variable here that does not do what it is set for, as `NAME=value` with the truth."""
    for belief in BELIEFS:
        value = environ.get(belief.name)
        if value and belief.mistaken(value):
            yield f"{belief.name}={value}", belief
