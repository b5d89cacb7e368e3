"""Small models of every kind, and the runs of them that the tracker, the trace and the profiler count."""

from collections.abc import Iterator
from typing import Any

from launcher.memory.trace_request import TraceRequest

_SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500}
_ENCODER = _SIZES | {"intermediate_size": 256, "max_position_embeddings": 258}
_DECODER = _SIZES | {"intermediate_size": 128, "num_key_value_heads": 2, "max_position_embeddings": 256}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2}
TINY: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **_ENCODER},
    "roberta": {"model_type": "roberta", **_ENCODER, "pad_token_id": 1, "bos_token_id": 0},
    "gpt2": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500, **_ENDS},
    "llama": {"model_type": "llama", **_DECODER},
    "qwen2": {"model_type": "qwen2", **_DECODER},
    "bloom": {"model_type": "bloom", "hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500},
}
ENCODERS = ("bert", "roberta", "distilbert", "xlm-roberta")
BACKENDS_X2 = ("multi_gpu", "fsdp2", "zero2", "zero3")


def tiny_request(name: str, method: str, *, checkpointing: bool, **changes: Any) -> TraceRequest:
    """A small model of the architecture, 2 x 64 tokens, fp32, on CPU kernels."""
    return TraceRequest(
        config=TINY[name],
        task="classification" if name in ENCODERS else "causal_lm",
        adapter={"method": method},
        micro_batch=2,
        seq_len=64,
        checkpointing=checkpointing,
        attention="eager" if name == "bloom" else "sdpa",
        kernels="cpu",
        **changes,
    )


def _ways(name: str) -> Iterator[tuple[str, bool]]:
    """Prefix tuning needs a cache of keys and values: decoders only, and never with checkpointing."""
    for method in ("full", "lora", "prefix"):
        for checkpointing in (False, True):
            if method != "prefix" or not (checkpointing or name in ENCODERS):
                yield method, checkpointing


def single_requests() -> Iterator[tuple[str, TraceRequest]]:
    """Every model, method and kind of checkpointing on one process."""
    for name in TINY:
        for method, checkpointing in _ways(name):
            label = f"{name} {method} {'checkpointing' if checkpointing else 'plain'}"
            yield label, tiny_request(name, method, checkpointing=checkpointing)


def sharded_request(
    backend: str, name: str = "llama", method: str = "full", *, checkpointing: bool = False
) -> TraceRequest:
    """A small model over two ranks, with communication buffers of its size."""
    buckets = {"reduce_bucket_size": 100_000, "allgather_bucket_size": 100_000}
    options: dict[str, Any] = buckets if backend.startswith("zero") else {}
    if backend == "zero3":
        # Else the model is below what stays gathered: nothing of it would be divided, fetched or freed.
        options |= {"stage3_param_persistence_threshold": 100, "stage3_max_live_parameters": 40_000}
        options |= {"stage3_prefetch_bucket_size": 20_000}
    return tiny_request(
        name, method, checkpointing=checkpointing, backend=backend, backend_options=options, num_ranks=2
    )


def sharded_requests() -> Iterator[tuple[str, TraceRequest]]:
    """Every model on two ranks of every backend: full, LoRA and prefix, checkpointing on and off.

    ZeRO-3 without prefix: DeepSpeed divides what makes the keys and values, which no test here compares.
    """
    for backend in BACKENDS_X2:
        for name in TINY:
            for method, checkpointing in _ways(name):
                if (method, checkpointing) in (("full", True), ("lora", False)) and name not in _TWICE:
                    continue
                if method == "prefix" and backend == "zero3":
                    continue
                label = f"{name} {method} {'checkpointing' if checkpointing else 'plain'} {backend} x2"
                yield label, sharded_request(backend, name, method, checkpointing=checkpointing)


# Both kinds of checkpointing for both methods; the other models have full plain and LoRA checkpointing.
_TWICE = ("bert", "llama")
