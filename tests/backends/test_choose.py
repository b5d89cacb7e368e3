"""Which backend runs when the starter left it open."""

import pytest

from launcher.backends.choose import settle_backend
from launcher.facts import Starter


@pytest.mark.parametrize(
    ("starter", "wanted", "backend"),
    [
        (Starter(name="python"), "zero2", "zero2"),
        (Starter(name="python"), "multi_gpu", "single_gpu"),
        (Starter(name="deepspeed"), "zero2", "zero2"),
        (Starter(name="deepspeed"), "single_gpu", "zero2"),
        (Starter(name="deepspeed", world_size=2), "multi_gpu", "zero2"),
        (Starter(name="accelerate", backend="single_gpu"), "zero2", "single_gpu"),
    ],
)
def test_the_starter_first_then_the_recipe(starter: Starter, wanted: str, backend: str) -> None:
    assert settle_backend(starter, wanted) == backend
