"""Packed samples train exactly as they do alone; models that cannot do so are refused with the reason."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, BloomConfig, GPT2Config, LlamaConfig, Qwen2Config

from launcher.data.batches_torch import collate
from launcher.data.ragged import offsets_of
from launcher.data.tokens import TokenStore, packed, shifted_targets
from launcher.errors import BadValue
from launcher.precision_torch import StepPrecision
from launcher.step.module import TrainModule
from launcher.step.packed import block_mask, packed_inputs
from launcher.step.packing_check import require_packing

SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 90}
TINY = {
    "llama": LlamaConfig(**SIZES, num_key_value_heads=2, intermediate_size=64, initializer_range=0.3),
    "qwen2": Qwen2Config(**SIZES, num_key_value_heads=2, intermediate_size=64, initializer_range=0.3),
    "gpt2": GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=90, initializer_range=0.3),
    "bloom": BloomConfig(n_layer=2, hidden_size=32, n_head=4, vocab_size=90),
}


def module_of(name: str, *, kernel: str = "sdpa", chunk_bytes: int | None = None) -> TrainModule:
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(TINY[name], attn_implementation=kernel, dtype=torch.float32)
    precision = StepPrecision(name="fp32", device_type="cpu")
    module = TrainModule(model, task="causal_lm", precision=precision, chunk_bytes=chunk_bytes)
    return module.eval()


def store_of(lengths: list[int], max_length: int = 24) -> TokenStore:
    draw = np.random.default_rng(0)
    offsets = offsets_of(np.array(lengths, dtype=np.int64))
    trained = draw.random(offsets[-1]) < 0.7
    return TokenStore(
        task="causal_lm",
        input_ids=draw.integers(1, 90, offsets[-1]).astype(np.int32),
        offsets=offsets,
        labels=None,
        trained=trained,
        num_targets=shifted_targets(offsets, trained),
        max_length=max_length,
    )


LENGTHS = [3, 11, 24, 7, 2, 9, 14, 5, 6, 13]


def token_losses(module: TrainModule, batch: dict[str, torch.Tensor]) -> list[float]:
    """Of every trained token, sorted: packing changes their order."""
    labels = batch["labels"]
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    if "position_ids" in batch:
        inputs, labels = packed_inputs(batch["input_ids"], batch["position_ids"], labels, module.kernel())
    logits = module.base()(**inputs, use_cache=False).logits[:, :-1].flatten(0, 1)
    targets = labels[:, 1:].flatten()
    found = torch.nn.functional.cross_entropy(logits, targets, reduction="none", ignore_index=-100)
    return sorted(found[targets != -100].tolist())


@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2"])
def test_every_token_has_the_same_loss_packed_and_alone(name: str, kernel: str) -> None:
    module, store = module_of(name, kernel=kernel), store_of(LENGTHS)
    together = packed(store)
    assert len(together) < len(store)
    rows = np.arange(len(store)), np.arange(len(together))
    with torch.no_grad():
        alone = token_losses(module, collate(store, rows[0], 0))
        found = token_losses(module, collate(together, rows[1], 0))
    assert len(alone) == int(store.num_targets.sum()) == int(together.num_targets.sum())
    assert found == pytest.approx(alone, abs=2e-5)


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2"])
def test_control_without_the_mask_of_blocks_the_losses_differ(name: str) -> None:
    module, store = module_of(name), store_of(LENGTHS)
    batch = collate(packed(store), np.arange(len(packed(store))), 0)
    with torch.no_grad():
        alone = token_losses(module, collate(store, np.arange(len(store)), 0))
        seen = batch.pop("position_ids")
        blind = token_losses(module, batch)
    assert seen.max() < 24
    assert max(abs(left - right) for left, right in zip(alone, blind, strict=True)) > 0.05


@pytest.mark.parametrize("chunk_bytes", [None, 4 * 90 * 5])
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_loss_and_gradients_of_a_packed_step_are_those_of_its_samples(
    name: str, chunk_bytes: int | None
) -> None:
    store = store_of(LENGTHS)
    found = []
    for each in (store, packed(store)):
        module = module_of(name, chunk_bytes=chunk_bytes)
        loss, _ = module(**collate(each, np.arange(len(each)), 0))
        loss.backward()
        gradients = torch.cat([weight.grad.flatten() for weight in module.parameters()])
        found.append((loss.detach(), gradients))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-3, atol=2e-4)


def test_flash_attention_gets_one_row_whose_positions_show_the_borders() -> None:
    batch = collate(packed(store_of(LENGTHS)), np.arange(3), 0)
    inputs, labels = packed_inputs(
        batch["input_ids"], batch["position_ids"], batch["labels"], "flash_attention_2"
    )
    assert inputs["attention_mask"] is None
    assert inputs["input_ids"].shape == inputs["position_ids"].shape == labels.shape
    assert labels.shape[0] == 1
    first = inputs["position_ids"][0] == 0
    assert (labels[0][first] == -100).all()


def test_block_mask_by_hand() -> None:
    mask = block_mask(torch.tensor([[0, 1, 0, 1, 2]]))[0, 0].int().tolist()
    assert mask == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2"])
def test_models_that_can_are_let_through(name: str) -> None:
    require_packing(module_of(name), 24)


def test_bloom_is_refused_for_its_alibi() -> None:
    with pytest.raises(BadValue, match="ALiBi") as error:
        require_packing(module_of("bloom", kernel="eager"), 24)
    assert error.value.problems[0].type == "data.packing=false"


def test_a_window_shorter_than_a_row_is_refused() -> None:
    module = module_of("qwen2")
    module.base().config.use_sliding_window = True
    module.base().config.sliding_window = 16
    with pytest.raises(BadValue, match="window of 16 tokens"):
        require_packing(module, 24)


def test_a_model_that_looks_across_samples_is_found_out_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.step.packed.block_mask", lambda ids: torch.ones(1, 1, 12, 12).tril().bool())
    with pytest.raises(BadValue, match="logits change by"):
        require_packing(module_of("llama"), 24)
