"""The optimizers that a recipe can name: built, stepped, and resumed without a trace."""

from typing import Any, get_args

import pytest
import torch

from launcher.backends.options import BACKENDS
from launcher.optim.build_torch import make, parameter_groups
from launcher.optim.table import OPTIMIZERS
from launcher.recipe.training import TrainingOptions
from tests.backends.parts import connected

NAMES = [*OPTIMIZERS]


def test_the_table_and_the_schema_name_the_same() -> None:
    assert set(NAMES) == set(get_args(TrainingOptions.model_fields["optim"].annotation))
    assert all(set(each.backends or ()) <= set(BACKENDS.names()) for each in OPTIMIZERS.values())


class Embedded(torch.nn.Module):
    """An embedding, a layer whose moments are large enough for 8 bits, and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed = torch.nn.Embedding(50, 128)
        self.layer = torch.nn.Linear(128, 128)
        self.head = torch.nn.Linear(128, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.head(torch.tanh(self.layer(self.embed(ids).mean(1))))
        return found


def train(strategy: Any, steps: range) -> None:
    for step in steps:
        draw = torch.Generator().manual_seed(step)
        ids, labels = (
            torch.randint(0, 50, (16, 6), generator=draw),
            torch.randint(0, 4, (16,), generator=draw),
        )
        strategy.backward(torch.nn.functional.cross_entropy(strategy.module(ids), labels))
        strategy.step()


def strategy_of(name: str) -> Any:
    module = Embedded()

    def build(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return make(name, groups, learning_rate=1e-2, betas=(0.9, 0.999), epsilon=1e-8)  # type: ignore[arg-type]

    return connected(module, groups=parameter_groups(module, 0.0), make_optimizer=build)


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_optimizer_goes_on_bit_for_bit(name: str) -> None:
    whole = strategy_of(name)
    train(whole, range(6))
    first = strategy_of(name)
    train(first, range(3))
    kept = {key: {k: v.float().clone() for k, v in state.items()} for key, state in first.state()}
    again = strategy_of(name)
    again.load_state(kept.__getitem__, num_updates=3)
    train(again, range(3, 6))
    pairs = zip(whole.module.parameters(), again.module.parameters(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)
    fresh = zip(whole.module.parameters(), strategy_of(name).module.parameters(), strict=True)
    assert all(not torch.equal(left, right) for left, right in fresh)


def test_bytes_are_kept_for_layers_and_fp32_for_embeddings() -> None:
    strategy = strategy_of("adamw_8bit")
    train(strategy, range(1))
    kinds = {name: state["state1"].dtype for name, state in strategy.state()}
    assert kinds["layer.weight"] is torch.uint8
    assert kinds["embed.weight"] is kinds["head.weight"] is torch.float32


def test_one_optimizers_exceptions_are_not_the_next_ones() -> None:
    """In one process, as where a run opens more layers; the same place held an embedding before."""
    train(strategy_of("adamw_8bit"), range(1))
    layer = torch.nn.Sequential(torch.nn.Linear(128, 128))
    groups = parameter_groups(layer, 0.0)
    optimizer = make("adamw_8bit", groups, learning_rate=1e-2, betas=(0.9, 0.999), epsilon=1e-8)
    layer(torch.ones(2, 128)).sum().backward()
    optimizer.step()
    assert optimizer.state[layer[0].weight]["state1"].dtype is torch.uint8


def test_8_bits_stay_near_32() -> None:
    exact, rounded = strategy_of("adamw_torch"), strategy_of("adamw_8bit")
    start = [parameter.detach().clone() for parameter in exact.module.parameters()]
    for strategy in (exact, rounded):
        train(strategy, range(20))
    ends = [[each.detach() for each in strategy.module.parameters()] for strategy in (exact, rounded)]
    pairs = list(zip(*ends, start, strict=True))
    way = sum(float((a - c).pow(2).sum()) for a, _, c in pairs) ** 0.5
    apart = sum(float((a - b).pow(2).sum()) for a, b, _ in pairs) ** 0.5
    assert 0 < apart < 0.1 * way
