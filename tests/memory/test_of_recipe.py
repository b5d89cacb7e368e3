"""A recipe's own setting: what the plan chose, and how this launcher's step runs it."""

from typing import Any

import pytest

from launcher.memory.estimate import estimate
from launcher.memory.of_recipe import setting_of
from launcher.memory.setting import Setting
from launcher.recipe.schema import Recipe
from tests.memory.shapes import mistral


def _setting(
    backend: str = "single_gpu", *, method: str = "lora", ranks: int = 1, model: Any = None, **training: Any
) -> Setting:
    content = {
        "task": "causal_lm",
        "model": {"model_name_or_path": "mistralai/Mistral-7B-v0.1", **(model or {})},
        "data": {"train_file": "rows.jsonl", "max_length": 2048},
        "adapter": {"method": method},
        "training": training,
    }
    return setting_of(
        Recipe.model_validate(content),
        mistral(),
        backend=backend,
        num_ranks=ranks,
        micro_batch=4,
        precision="bf16",
        weights_dtype="float32" if method == "full" else "bfloat16",
    )


def test_frozen_weights_are_half_and_adapters_fp32() -> None:
    found = _setting()
    assert (found.weights_dtype, found.trainable_dtype) == ("bfloat16", "float32")
    assert found.adapter is not None
    assert found.adapter.rank == 8
    assert (found.micro_batch, found.seq_len) == (4, 2048)


def test_full_training_holds_fp32_weights() -> None:
    found = _setting(method="full", activation_checkpointing=True, loss_chunk_bytes=64_000_000)
    assert found.adapter is None
    assert found.checkpointing == "full"
    assert (found.loss, found.loss_chunk_tokens) == ("chunked", 500)


def test_packed_weights_and_the_optimizer_come_from_the_recipe() -> None:
    found = _setting(model={"load_in_4bit": True}, optim="adamw_torch")
    assert (found.quantisation, found.double_quant, found.optimizer) == ("nf4", True, "adamw_foreach")


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("single_gpu", "none"),
        ("multi_gpu", "none"),
        ("zero2", "zero2"),
        ("zero3_offload", "zero3"),
        ("fsdp2", "fsdp2"),
        ("fsdp2_offload", "fsdp2"),
    ],
)
def test_every_backend_has_an_estimate(backend: str, kind: str) -> None:
    found = _setting(backend, method="full", ranks=1 if backend == "single_gpu" else 4)
    assert found.sharding_kind == kind
    assert estimate(found).peak_bytes > 0


def test_offloaded_and_divided_backends_need_less_than_one_card() -> None:
    one = estimate(_setting(method="full")).peak_bytes
    for backend in ("zero2", "zero3", "fsdp2", "zero2_offload", "zero3_offload"):
        assert estimate(_setting(backend, method="full", ranks=8)).peak_bytes < one, backend
