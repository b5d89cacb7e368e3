"""One process's step: clipping, skipping, fp16's scale, against torch's own pieces."""

import copy
import math

import pytest
import torch
from torch import nn

from launcher.backends.strategy_torch import poisoned_if_not_finite
from launcher.precision_torch import LossScale, StepPrecision
from tests.backends.parts import connected


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(5, 3)


def loss_of(module: nn.Module, factor: float = 1.0) -> torch.Tensor:
    torch.manual_seed(1)
    found: torch.Tensor = (module(torch.randn(4, 5)) ** 2).sum() * factor
    return found


def test_a_step_equals_clip_grad_norm_and_adamw() -> None:
    ours, theirs = layer(), layer()
    strategy = connected(ours)
    decay = [
        {"params": [theirs.weight], "weight_decay": 0.01},
        {"params": [theirs.bias], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(decay, lr=1e-2)
    for _ in range(5):
        strategy.backward(loss_of(ours))
        outcome = strategy.step()
        loss_of(theirs).backward()
        norm = nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        assert float(outcome.grad_norm) == pytest.approx(float(norm), rel=1e-6)
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-6, atol=1e-7)


def test_without_a_limit_nothing_is_clipped() -> None:
    module = layer()
    strategy = connected(module, max_grad_norm=0.0)
    strategy.backward(loss_of(module, 100.0))
    before = [p.grad.clone() for p in module.parameters() if p.grad is not None]
    kept: list[torch.Tensor] = []
    strategy.optimizer.register_step_pre_hook(
        lambda *_: kept.extend(p.grad.clone() for p in module.parameters() if p.grad is not None)
    )
    strategy.step()
    assert all(torch.equal(left, right) for left, right in zip(before, kept, strict=True))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_step_that_is_not_finite_moves_nothing(fused: bool, bad: float) -> None:
    module = layer()
    strategy = connected(module, fused=fused)
    strategy.backward(loss_of(module))
    strategy.step()
    before = copy.deepcopy([p.detach() for p in module.parameters()])
    state = copy.deepcopy(strategy.optimizer.state_dict()["state"])
    strategy.backward(loss_of(module, bad))
    assert float(strategy.step().skipped) == 1
    after = strategy.optimizer.state_dict()["state"]
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert all(torch.equal(state[i][key], after[i][key]) for i in state for key in state[i])
    strategy.backward(loss_of(module))
    assert float(strategy.step().skipped) == 0
    assert not torch.equal(before[0], module.weight)


def test_an_infinite_loss_with_finite_gradients_is_skipped_too() -> None:
    module = layer()
    strategy = connected(module)
    before = module.weight.detach().clone()
    strategy.backward(loss_of(module) + torch.tensor(math.inf))  # its own gradient is finite
    assert float(strategy.step().skipped) == 1
    assert torch.equal(before, module.weight)
    assert float(poisoned_if_not_finite(torch.tensor(2.5))) == 2.5


def test_fp16_computes_in_float16_and_an_overflow_skips_exactly_one_step() -> None:
    module = layer()
    strategy = connected(module, precision="fp16")
    precision = StepPrecision(name="fp16", device_type="cpu")
    scales, skips = [], []
    for step in range(4):
        with precision.autocast():
            out = module(torch.randn(4, 5))
        assert out.dtype is torch.float16
        precision.check(out.dtype)
        strategy.backward(out.float().square().mean() * 0.01 * (math.inf if step == 1 else 1.0))
        skips.append(float(strategy.step().skipped))
        scales.append(float(strategy.loss_scale.scale))
    assert skips == [0, 1, 0, 0]
    assert scales == [65536, 32768, 32768, 32768]


def test_the_loss_scale_moves_as_torchs_grad_scaler_does() -> None:
    ours = LossScale(StepPrecision(name="fp16", device_type="cpu"), initial=1024.0, interval=3)
    theirs = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    parameter = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    torch.manual_seed(0)
    for bad in torch.rand(60) < 0.2:
        factor = math.inf if bad else 1.0
        theirs.scale((parameter * factor).sum()).backward()
        theirs.step(optimizer)
        theirs.update()
        optimizer.zero_grad()
        ours.update(torch.tensor(float(bad)))
        assert float(ours.scale) == theirs.get_scale()


def test_only_fp16_has_a_live_scale() -> None:
    for name in ("fp32", "bf16"):
        scale = LossScale(StepPrecision(name=name, device_type="cpu"))
        scale.update(torch.tensor(1.0))
        assert not scale.is_live and float(scale.scale) == 1.0


def test_moments_and_weights_survive_a_round_trip() -> None:
    module, other = layer(), layer()
    strategy, fresh = connected(module), connected(other)
    for _ in range(3):
        strategy.backward(loss_of(module))
        strategy.step()
    state = {name: {key: t.clone() for key, t in held.items()} for name, held in strategy.state()}
    assert set(state["weight"]) == {"weight", "exp_avg", "exp_avg_sq"}
    fresh.load_state(state.__getitem__, num_updates=3)
    for each, one in ((module, strategy), (other, fresh)):
        one.backward(loss_of(each))
        one.step()
    assert torch.equal(module.weight, other.weight) and torch.equal(module.bias, other.bias)
