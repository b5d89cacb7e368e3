"""`--sweep`: every combination, and what is not known said with the nearest name."""

import pytest

from launcher.errors import BadValue, UnknownSetting
from launcher.plan.sweep import Point, card_name, read_sweep


def test_every_combination_in_the_order_given() -> None:
    found = read_sweep(["gpu=rtx3090,rtx4090", "gpus=1,2"])
    assert found == [Point(gpu=gpu, gpus=gpus) for gpu in ("rtx3090", "rtx4090") for gpus in (1, 2)]


def test_a_card_may_be_named_by_its_parts_where_that_leaves_nothing_open() -> None:
    assert card_name("a100_40", "--gpu") == "a100_pcie_40"
    assert card_name("h100", "--gpu") == "h100_sxm"
    with pytest.raises(UnknownSetting, match="leaves the memory open"):
        card_name("a100", "--gpu")


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["gpuu=rtx3090"], UnknownSetting, "unknown key 'gpuu'"),
        (["gpu=rtx3091"], UnknownSetting, "unknown GPU 'rtx3091'"),
        (["gpus=1,two"], BadValue, "'two' is no number of cards"),
        (["gpu="], BadValue, "gpu has no values"),
        (["backend=zero9"], UnknownSetting, "zero9"),
    ],
)
def test_a_mistake_is_named(words: list[str], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        read_sweep(words)
