"""AdamW in host RAM: which one and why is said, and both make the same steps."""

from pathlib import Path
from typing import Any

import pytest
import torch

from launcher.backends import operators
from launcher.backends.cpu_adam_torch import counts_in_python, offloaded
from launcher.backends.operators import CPU_ADAM
from launcher.errors import HardwareError
from launcher.optim.build_torch import build_optimizer, parameter_groups


def adamw(module: torch.nn.Module, *, fused: bool = True) -> torch.optim.Optimizer:
    groups = parameter_groups(module, 0.1)
    return build_optimizer(groups, learning_rate=1e-2, betas=(0.9, 0.98), epsilon=1e-6, fused=fused)


def module() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(33, 17), torch.nn.Linear(17, 5))


@pytest.fixture
def without_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled yet."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))


@pytest.mark.parametrize(("asked", "why"), [("auto", "is not compiled here"), ("torch", "asked for")])
def test_torchs_steps_where_deepspeeds_is_not_there_or_not_wanted(
    without_operators: None, asked: str, why: str
) -> None:
    inner = adamw(module())
    found, line = offloaded(inner, asked)
    assert found is inner
    assert line.startswith("optimizer in host RAM: torch's fused AdamW: ") and why in line


def test_another_optimizer_is_left_alone() -> None:
    inner = torch.optim.SGD(module().parameters(), lr=0.1)
    found, line = offloaded(inner, "auto")
    assert found is inner and "AdamW only" in line


def test_asked_for_where_it_cannot_be_built_is_refused(
    without_operators: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(HardwareError, match="no-such-compiler"):
        offloaded(adamw(module()), "deepspeed")


def test_deepspeeds_makes_the_same_steps() -> None:
    """AdamW with decoupled decay and bias correction, at a rate that changes, in both groups."""
    import os

    if not operators.is_compiled(CPU_ADAM, os.environ):
        pytest.skip("cpu_adam is not compiled; type: python -m launcher.backends.build_torch cpu_adam")
    modules = [module(), module()]
    inner, (theirs, line) = adamw(modules[0]), offloaded(adamw(modules[1]), "auto")
    assert "DeepSpeed's CPU Adam: compiled already" in line
    assert counts_in_python(theirs) and not counts_in_python(inner)
    start = [parameter.detach().clone() for parameter in modules[0].parameters()]
    generator = torch.Generator().manual_seed(5)
    for number in range(20):
        gradients = [torch.randn(each.shape, generator=generator) for each in start]
        for optimizer, each in ((inner, modules[0]), (theirs, modules[1])):
            _step(optimizer, each, gradients, rate=1e-2 * (1 - number / 20))
    pairs = zip(*(each.parameters() for each in modules), strict=True)
    away = sum(float((a - b).detach().norm() ** 2) for a, b in pairs) ** 0.5
    ways = zip(modules[0].parameters(), start, strict=True)
    way = sum(float((a - b).detach().norm() ** 2) for a, b in ways) ** 0.5
    assert away <= 1e-5 * way
    assert way > 0.1


def _step(optimizer: Any, of: torch.nn.Module, gradients: list[torch.Tensor], *, rate: float) -> None:
    for parameter, gradient in zip(of.parameters(), gradients, strict=True):
        parameter.grad = gradient.clone()
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
