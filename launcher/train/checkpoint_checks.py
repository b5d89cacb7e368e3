"""What a checkpoint must agree with before it is read into a run: facts, names, moments, shapes.

Each check raises ResumeMismatch with what differs. What a checkpoint lacks of the model must be exactly
what is frozen: an adapter's checkpoint holds no base, and one missing adapter tensor is an error.
"""

from pathlib import Path
from typing import Any

from launcher.errors import Problem, ResumeMismatch

# Parameter to what is held of it (weight, moments), with its shape.
Held = dict[str, dict[str, tuple[int, ...]]]


# Counted of the rows as tokenised: nobody types them.
_OF_THE_ROWS = ("data.rows", "data.tokens", "data.digest")
_BY_ROWS = "data.train_file=FILE with the rows that it was trained on, unchanged; or --new to start over"


def check_continuity(then: dict[str, Any], now: dict[str, Any], checkpoint: Path) -> None:
    """Raise ResumeMismatch, with every fact that has changed; older checkpoints state fewer."""
    changed = [key for key in now if key in then and then[key] != now[key]]
    if changed:
        raise ResumeMismatch(
            [
                Problem(
                    where=checkpoint.name,
                    what=f"{key} was {then.get(key)!r} when this was written, it is {now[key]!r} now",
                    right="the same value: it decides which rows are still to come, and which weights",
                    type=_BY_ROWS
                    if key in _OF_THE_ROWS
                    else f"{key}={then.get(key)}, or --new to start over",
                )
                for key in changed
            ]
        )


def check_names(wanted: set[str], held: set[str], checkpoint: Path) -> None:
    """What a checkpoint lacks of the model must be exactly what is frozen."""
    missing, unknown = sorted(wanted - held), sorted(held - wanted)
    if missing or unknown:
        lacks = f"{len(missing)} trained tensors are missing ({missing[0]}, ...)" if missing else ""
        more = f"{len(unknown)} are trained no longer ({unknown[0]}, ...)" if unknown else ""
        raise ResumeMismatch(
            Problem(
                where=checkpoint.name,
                what="; ".join(text for text in (lacks, more) if text),
                right=f"the {len(held)} tensors that the checkpoint holds",
                type="the recipe of this run (recipe.yaml in its folder), or --new to start over",
            )
        )


def check_moments(held: Held, num_updates: int, checkpoint: Path) -> None:
    """An optimizer must not start anew without a word."""
    lacking = sorted(name for name, keys in held.items() if num_updates and keys.keys() == {"weight"})
    if lacking:
        raise ResumeMismatch(
            Problem(
                where=checkpoint.name,
                what=f"no optimizer state for {len(lacking)} of {len(held)} tensors ({lacking[0]}, ...)",
                right=f"two moments of every trained tensor, after {num_updates} updates",
                type="resume_weights_only=true to go on with fresh moments, or --resume OTHER_CHECKPOINT",
            )
        )


def check_shapes(wanted: dict[str, tuple[int, ...]], held: Held, checkpoint: Path) -> None:
    """Weights and moments have the shapes of the model's parameters."""
    other = sorted(name for name, shape in wanted.items() if set(held[name].values()) != {shape})
    if other:
        shape = next(iter(held[other[0]].values()))
        raise ResumeMismatch(
            Problem(
                where=checkpoint.name,
                what=f"{len(other)} tensors have another shape ({other[0]}: {list(shape)} there, "
                f"{list(wanted[other[0]])} here)",
                right="the shapes that the checkpoint holds",
                type="the recipe of this run (recipe.yaml in its folder), or --new to start over",
            )
        )
