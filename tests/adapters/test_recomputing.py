"""Every method with recomputed activations: the same loss and gradients as without."""

from pathlib import Path
from typing import Any

import pytest
import torch

from launcher.adapters.options import METHODS
from launcher.errors import RecipeError
from launcher.models.load_torch import checkpoint_activations, load_model
from launcher.models.options import ModelOptions
from launcher.recipe.load import load_recipe
from launcher.registry import load_attribute
from tests import tiny

IDS = torch.tensor([[5, 9, 12, 7, 20, 8], [6, 11, 9, 10, 21, 5]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_llama(tmp_path_factory.mktemp("recomputing") / "llama")


def gradients(folder: Path, method: str, *, recomputed: bool) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients of one backward pass, the trained tensors away from their start."""
    options = ModelOptions.model_validate({"model_name_or_path": str(folder)})
    model: Any = load_model(options, task="causal_lm", dtype="float32", label_names=(), pad_token_id=0)
    if recomputed:
        checkpoint_activations(model)
    found = METHODS.get(method)
    wrapped: Any = load_attribute(found.apply)(model, found.options(), task="causal_lm")
    torch.manual_seed(3)
    trained = {name: each for name, each in wrapped.named_parameters() if each.requires_grad}
    for each in trained.values():
        torch.nn.init.normal_(each, std=0.1)
    wrapped.train()
    loss = wrapped(input_ids=IDS, attention_mask=torch.ones_like(IDS), labels=IDS).loss
    loss.backward()
    return loss.item(), {name: each.grad for name, each in trained.items() if each.grad is not None}


@pytest.mark.parametrize("method", [each.name for each in METHODS if not each.needs_cache])
def test_b018_recomputing_changes_no_number(method: str, folder: Path) -> None:
    plain, again = (gradients(folder, method, recomputed=each) for each in (False, True))
    assert plain[0] == pytest.approx(again[0], abs=1e-6)
    assert plain[1].keys() == again[1].keys() and plain[1]
    for name, each in plain[1].items():
        assert torch.allclose(each, again[1][name], atol=1e-6), name
        assert each.abs().max() > 0, name


@pytest.mark.parametrize("method", [each.name for each in METHODS if each.needs_cache])
def test_b018_what_needs_the_cache_trains_without_recomputing_and_is_refused_with_it(
    method: str, folder: Path
) -> None:
    _, found = gradients(folder, method, recomputed=False)
    assert found and all(each.abs().max() > 0 for each in found.values())
    with pytest.raises(RecipeError, match="cache"):
        load_recipe("quickstart_lm", [f"adapter={method}", "activation_checkpointing=true"])
