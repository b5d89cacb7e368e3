"""Whether a model can be trained on packed rows: known reasons against it first, then a proof on itself."""

import inspect
from typing import Any

import torch

from launcher.errors import BadValue, Problem
from launcher.step.module import TrainModule
from launcher.step.packed import is_flash, packed_inputs

# Two samples of these lengths in one row; far below any model's limit.
_LENGTHS = (5, 7)
_TOLERANCE = 0.02


def require_packing(module: TrainModule, max_length: int) -> None:
    """Raise BadValue with the reason where packed samples would see one another, or the model would fail.

    The weights must be whole (before a backend divides them). With flash attention, which needs a card,
    only the known reasons are looked for.
    """
    reason = known_reason(module, max_length)
    if reason is None and not is_flash(module.kernel()):
        reason = proven_reason(module)
    if reason is not None:
        raise BadValue(
            Problem(
                where="data.packing",
                what=f"this model cannot train on packed rows: {reason}",
                right="one sample a row; group_by_length keeps the padding small",
                type="data.packing=false",
            )
        )


def known_reason(module: TrainModule, max_length: int) -> str | None:
    """Why this architecture or adapter cannot take packed rows; None where nothing is known against it."""
    base = module.base()
    config = base.config
    if module.adds_tokens():
        return "its adapter puts vectors in front of every row, which only the first sample would see"
    if getattr(config, "alibi", False) or config.model_type in ("bloom", "mpt"):
        return "its positions are ALiBi distances, made from a 2-D mask; it takes no mask of blocks"
    if "position_ids" not in inspect.signature(base.forward).parameters:
        return "it takes no position ids, so every sample but the first would start in the middle"
    window = getattr(config, "sliding_window", None)
    if window and getattr(config, "use_sliding_window", True) and window < max_length:
        return f"its attention window of {window} tokens is shorter than a row of {max_length}"
    return None


def proven_reason(module: TrainModule) -> str | None:
    """Compare two samples in one row with the same two alone, on this very model."""
    base, was_training = module.base(), module.training
    module.eval()
    try:
        with torch.no_grad(), module.precision.autocast():
            together = _together(base, module.kernel())
            alone = torch.cat([_logits(base, ids) for ids in _samples(base)], dim=1)
    except (ValueError, RuntimeError, TypeError, NotImplementedError) as error:
        return f"it refuses them ({str(error).splitlines()[0][:200]})"
    finally:
        module.train(was_training)
    spread = (alone - alone.mean(-1, keepdim=True)).abs().mean()
    difference = (together - alone).abs().max()
    if difference <= _TOLERANCE * max(float(spread), 1e-3):
        return None
    return f"a sample's logits change by {float(difference):.3g} when another stands in front of it"


def _samples(base: Any) -> list[torch.Tensor]:
    device = next(base.parameters()).device
    top = min(int(base.get_input_embeddings().weight.shape[0]), 1000)
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(0, top, (1, length), generator=draw).to(device) for length in _LENGTHS]


def _logits(base: Any, ids: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = base(
        input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False
    ).logits.float()
    return found


def _together(base: Any, kernel: str) -> torch.Tensor:
    ids = torch.cat(_samples(base), dim=1)
    places = torch.cat([torch.arange(length) for length in _LENGTHS])[None].to(ids.device)
    inputs, _ = packed_inputs(ids, places, ids, kernel)
    found: torch.Tensor = base(**inputs, use_cache=False).logits.float()
    return found
