"""One global batch cut into micro batches: micro x accumulation x ranks, exactly, or refused."""

from launcher.errors import BadValue, Problem
from launcher.facts import StepSettings


def solve(global_batch_size: int, max_micro: int | None, num_ranks: int) -> StepSettings:
    """Cut the global batch for `num_ranks`, with the largest micro batch up to `max_micro` rows.

    Raises BadValue naming the two nearest global batches that these ranks can make.
    """
    if global_batch_size % num_ranks:
        raise BadValue(_unreachable(global_batch_size, num_ranks))
    rows_per_rank = global_batch_size // num_ranks
    micro = largest_divisor(rows_per_rank, max_micro or rows_per_rank)
    return StepSettings(
        global_batch_size=global_batch_size,
        micro_batch_size=micro,
        accumulation_steps=rows_per_rank // micro,
        num_ranks=num_ranks,
    )


def largest_divisor(number: int, limit: int) -> int:
    """The largest divisor of `number` that is at most `limit`."""
    return next(divisor for divisor in range(min(number, limit), 0, -1) if number % divisor == 0)


def nearest_reachable(global_batch_size: int, num_ranks: int) -> list[int]:
    """The global batches next below and next above that divide evenly over the ranks."""
    below = global_batch_size // num_ranks * num_ranks
    return [size for size in (below, below + num_ranks) if size > 0]


def _unreachable(global_batch_size: int, num_ranks: int) -> Problem:
    near = nearest_reachable(global_batch_size, num_ranks)
    choices = " or ".join(f"training.global_batch_size={size}" for size in near)
    what = f"{global_batch_size} rows do not divide evenly over {num_ranks} ranks"
    return Problem(
        what=f"training.global_batch_size: {what}",
        right=f"a multiple of {num_ranks}; the nearest: {' and '.join(map(str, near))}",
        type=choices,
    )
