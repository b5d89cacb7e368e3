"""How far two runs of a cell are apart: losses, gradient norms, and weights against the way they went."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.launching import distance, losses, metrics, weights


@dataclass(frozen=True, kw_only=True)
class Apart:
    """Largest absolute difference of losses, largest relative one of norms, ||w_a - w_b|| / ||w_a - w_0||."""

    loss: float
    norm: float
    displacement: float


def apart(ours: Path, alone: Path) -> Apart:
    """The run against the run of one process. Raises AssertionError where they logged other steps."""
    return Apart(
        loss=max(abs(a - b) for a, b in zip(losses(ours), losses(alone), strict=True)),
        norm=max(abs(a - b) / b for a, b in zip(norms(ours), norms(alone), strict=True)),
        displacement=distance(weights(ours / "final"), weights(alone / "final")) / moved(alone)[0],
    )


def moved(run: Path) -> tuple[float, float]:
    """How far the trained tensors went, and how long they were: norms."""
    start = weights_of(run / "start.safetensors")
    end = weights(run / "final")
    names = {name.replace(".default.", ".") for name in start}
    ends = {name: tensor for name, tensor in end.items() if name in names}
    starts = {name.replace(".default.", "."): tensor for name, tensor in start.items()}
    starts = {name: starts[name] for name in ends}
    return distance(starts, ends), distance(starts, {name: tensor * 0 for name, tensor in starts.items()})


def weights_of(file: Path) -> dict[str, Any]:
    """The tensors of one file."""
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(file)
    return found


def norms(run: Path) -> list[float]:
    """The logged gradient norms, in the order of steps."""
    return [line["grad_norm"] for line in metrics(run) if "loss" in line]
