"""The audit after the first updates finds what trains in name only."""

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from launcher.adapters.lora import LoraOptions
from launcher.adapters.lora_torch import apply
from launcher.models.load_torch import checkpoint_activations
from launcher.train.audit import findings, marks
from tests import tiny


def seen(model: nn.Module, before: dict[str, int]) -> tuple[list[str], list[str]]:
    after = marks(model.named_parameters())
    trainable = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return findings(trainable, {name: after[name] != before[name] for name in after})


def step(model: nn.Module, batch: dict[str, torch.Tensor], updates: int = 3) -> None:
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for _ in range(updates):
        model(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    ids = torch.arange(5, 25).reshape(2, 10)
    return {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}


def with_lora(folder: Path, *, reentrant: bool | None) -> nn.Module:
    base = AutoModelForCausalLM.from_pretrained(tiny.write_llama(folder))
    model = apply(base, LoraOptions(lora_target_modules="all-linear"), task="causal_lm").train()
    if reentrant is False:
        checkpoint_activations(base)
    if reentrant:
        base.activation_checkpointing_enable({"use_reentrant": True})
    return model


def test_b010_the_silent_variant_is_found(tmp_path: Path, batch: dict[str, torch.Tensor]) -> None:
    """Reentrant checkpointing cuts the adapters in the blocks off; a trainable head keeps loss legal."""
    model = with_lora(tmp_path, reentrant=True)
    model.get_base_model().lm_head.weight.requires_grad_(True)
    model.get_base_model()._require_grads_hook = None
    for module in model.modules():  # what PEFT and transformers add to save the day is taken away
        module._forward_hooks.clear()
    before = marks(model.named_parameters())
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        step(model, batch)
    still, moved = seen(model, before)
    assert len(still) == sum("lora_" in name for name in before) and not moved


@pytest.mark.parametrize("reentrant", [None, False])
def test_b010_our_form_of_checkpointing_trains_every_pair(
    reentrant: bool | None, tmp_path: Path, batch: dict[str, torch.Tensor]
) -> None:
    model = with_lora(tmp_path, reentrant=reentrant)
    before = marks(model.named_parameters())
    step(model, batch)
    assert seen(model, before) == ([], [])


def test_a_frozen_tensor_that_moves_is_found() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].requires_grad_(False)
    before = marks(model.named_parameters())
    with torch.no_grad():
        model[0].weight.add_(1)
        model[0].bias.add_(1)
        model[1].bias.add_(1e-7)
    assert seen(model, before) == ([], ["1.bias"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_one_changed_bit_changes_the_mark(dtype: torch.dtype) -> None:
    model = nn.Linear(8, 8).to(dtype)
    before = marks(model.named_parameters())
    with torch.no_grad():
        model.weight[3, 3] = torch.nextafter(model.weight[3, 3].float(), torch.tensor(9.0)).to(dtype) + 1
    assert seen(model, before)[0] == ["bias"]
