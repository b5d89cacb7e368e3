"""The global batch is cut exactly, or refused with the nearest reachable ones."""

import pytest

from launcher.errors import BadValue
from launcher.recipe.batch import largest_divisor, nearest_reachable, solve


@pytest.mark.parametrize("num_ranks", range(1, 9))
@pytest.mark.parametrize("global_batch_size", [1, 2, 7, 24, 32, 64, 210, 256, 840])
@pytest.mark.parametrize("max_micro", [None, 1, 2, 3, 8, 1000])
def test_b001_the_product_is_the_global_batch_on_one_to_eight_ranks(
    num_ranks: int, global_batch_size: int, max_micro: int | None
) -> None:
    if global_batch_size % num_ranks:
        with pytest.raises(BadValue):
            solve(global_batch_size, max_micro, num_ranks)
        return
    step = solve(global_batch_size, max_micro, num_ranks)
    assert step.micro_batch_size * step.accumulation_steps * step.num_ranks == global_batch_size
    assert step.micro_batch_size <= (max_micro or global_batch_size)
    # no larger divisor would have fitted
    rows = global_batch_size // num_ranks
    larger = range(step.micro_batch_size + 1, min(rows, max_micro or rows) + 1)
    assert all(rows % micro for micro in larger)


def test_b001_256_rows_on_seven_ranks_name_252_and_259() -> None:
    with pytest.raises(BadValue) as caught:
        solve(256, 2, 7)
    (problem,) = caught.value.problems
    assert "252 and 259" in problem.right
    assert problem.type == "training.global_batch_size=252 or training.global_batch_size=259"
    for size in nearest_reachable(256, 7):
        assert solve(size, 2, 7).global_batch_size == size


def test_fewer_rows_than_ranks_name_only_what_is_possible() -> None:
    assert nearest_reachable(3, 4) == [4]
    with pytest.raises(BadValue) as caught:
        solve(3, None, 4)
    assert "global_batch_size=4" in caught.value.problems[0].type


def test_the_micro_batch_is_an_upper_bound() -> None:
    assert solve(24, 5, 2).micro_batch_size == 4
    assert largest_divisor(13, 12) == 1
