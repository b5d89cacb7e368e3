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


_ALLOCATOR_WORDS = (
    *("max_split_size_mb", "roundup_power2_divisions", "roundup_bypass_threshold_mb", "backend"),
    *("garbage_collection_threshold", "expandable_segments", "release_lock_on_cudamalloc"),
    *("pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads"),
    *("max_non_split_rounding_mb", "per_process_memory_fraction", "graph_capture_record_stream_reuse"),
)


def _has_unknown_words(value: str) -> bool:
    """`expandable_segments=True`: torch refuses to start with a word that it does not know."""
    parts = re.sub(r"\[[^\]]*\]", "", value).split(",")
    return any(part.strip() and part.partition(":")[0].strip() not in _ALLOCATOR_WORDS for part in parts)


def _is_no_count(value: str) -> bool:
    return not re.fullmatch(r"\s*[1-9]\d*(\s*,\s*[1-9]\d*)*\s*", value)


def _is_no_number(value: str) -> bool:
    return not value.strip().isdigit()


def _has_no_scheme(value: str) -> bool:
    return not value.strip().startswith(("http://", "https://"))


def _is_no_list_of_cards(value: str) -> bool:
    """`0 1`, `0\uff0c1`, `cuda:0`, `all`, `0,0`: CUDA reads up to the first thing that is no card's id."""
    names = [part.strip() for part in value.split(",")]
    is_known = all(re.fullmatch(r"-1|\d+|(GPU|MIG)-[0-9a-fA-F/-]+", name) for name in names)
    return not is_known or len(set(names)) < len(names)


def _is_proxy_without_scheme(value: str) -> bool:
    return "://" not in value


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
        truth="torch stops at a word that it does not know; a setting is word:value, commas between",
        instead="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        mistaken=_has_unknown_words,
    ),
    Belief(
        name="PYTORCH_CUDA_ALLOC_CONF",
        truth="blocks that may not be split below so few MiB fragment the memory more, and slow it down",
        instead="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        mistaken=_has_tiny_split,
    ),
    Belief(
        name="CUDA_VISIBLE_DEVICES",
        truth="CUDA reads numbers with commas between, each once, and stops at the first thing that is none",
        instead="export CUDA_VISIBLE_DEVICES=0,1   (or unset it: every card)",
        mistaken=_is_no_list_of_cards,
    ),
    Belief(
        name="OMP_NUM_THREADS",
        truth="no number of threads: OpenMP ignores it, and every rank takes all cores",
        instead="unset OMP_NUM_THREADS; launcher run sets it by cores and ranks",
        mistaken=_is_no_count,
    ),
    Belief(
        name="HF_ENDPOINT",
        truth="an address without https:// in front is not reached",
        instead="export HF_ENDPOINT=https://hf-mirror.com",
        mistaken=_has_no_scheme,
    ),
    *(
        Belief(
            name=name,
            truth="a proxy without http:// in front is not taken by every library",
            instead=f"export {name}=http://HOST:PORT",
            mistaken=_is_proxy_without_scheme,
        )
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    ),
    Belief(
        name="HF_HUB_ENABLE_HF_TRANSFER",
        truth="hf_transfer is not used any more",
        instead="unset HF_HUB_ENABLE_HF_TRANSFER; faster: export HF_XET_HIGH_PERFORMANCE=1",
        mistaken=_is_on,
    ),
    Belief(
        name="WANDB_DISABLED",
        truth="only transformers' Trainer reads it: it switches no tracker off here",
        instead="unset WANDB_DISABLED; the recipe decides: tracking.report_to",
    ),
    Belief(
        name="TORCH_USE_CUDA_DSA",
        truth="it is read when torch is built, not when it runs: it does nothing here",
        instead="unset TORCH_USE_CUDA_DSA; CUDA_LAUNCH_BLOCKING=1 finds the place of a failed kernel",
    ),
    Belief(
        name="BITSANDBYTES_NOWELCOME",
        truth=_DOES_NOTHING,
        instead="unset BITSANDBYTES_NOWELCOME",
    ),
    Belief(
        name="NCCL_TIMEOUT",
        truth=_DOES_NOTHING,
        instead="unset NCCL_TIMEOUT; the launcher sets the time-out of every group",
    ),
    *(
        Belief(name=old, truth=f"torch reads {new} now", instead=f"unset {old}; export {new}=1")
        for old, new in (
            ("NCCL_BLOCKING_WAIT", "TORCH_NCCL_BLOCKING_WAIT"),
            ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
        )
    ),
    *(
        Belief(
            name=name,
            truth="a starter sets it for each rank: left in a shell, a plain start waits for other ranks",
            instead=f"unset {name}",
        )
        for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    ),
    Belief(
        name="MASTER_PORT",
        truth="no port's number",
        instead="unset MASTER_PORT; launcher run finds a free one",
        mistaken=_is_no_number,
    ),
    *(
        Belief(
            name=name,
            truth="accelerate launch sets it: left in a shell, a plain start takes itself for accelerate's",
            instead=f"unset {name}",
        )
        for name in ("ACCELERATE_USE_DEEPSPEED", "ACCELERATE_USE_FSDP", "ACCELERATE_MIXED_PRECISION")
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
