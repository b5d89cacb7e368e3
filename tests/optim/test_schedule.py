"""The rate's shapes against transformers' schedulers of the same names."""

import pytest

from launcher.optim.schedule import rate_factor, scaled_rate, warmup_updates

NAMES = ["linear", "cosine", "constant", "constant_with_warmup", "inverse_sqrt"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("warmup", [0, 5])
def test_shapes_equal_those_of_transformers(name: str, warmup: int) -> None:
    import torch
    from transformers import get_scheduler

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=40)
    for update in range(40):
        found = rate_factor(name, update, warmup=warmup, total=40)
        assert found == pytest.approx(scheduler.get_last_lr()[0], abs=1e-12), (name, update)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("name", [*NAMES, "polynomial"])
def test_every_shape_stays_within_the_highest_rate(name: str) -> None:
    factors = [rate_factor(name, update, warmup=4, total=30) for update in range(31)]
    assert all(0 <= factor <= 1 for factor in factors) and max(factors) == 1


def test_warmup_is_a_share_below_one_and_steps_from_one() -> None:
    assert warmup_updates(0.1, 125) == 13
    assert warmup_updates(100, 125) == 100
    assert warmup_updates(0, 125) == 0


def test_the_rate_follows_the_batch() -> None:
    assert scaled_rate(2e-5, global_batch=32, reference=8, scaling="linear") == pytest.approx(8e-5)
    assert scaled_rate(2e-5, global_batch=32, reference=8, scaling="sqrt") == pytest.approx(4e-5)
    assert scaled_rate(2e-5, global_batch=32, reference=8, scaling="none") == 2e-5
    assert scaled_rate(2e-5, global_batch=32, reference=None, scaling="linear") == 2e-5
