"""Which cards reach one another only through the host."""

import pytest

from launcher.hardware.catalog import get, names
from launcher.hardware.peer import lacks_peers, lacks_peers_by_name, peer_variables


@pytest.mark.parametrize("name", names())
def test_b059_the_drivers_name_and_the_table_agree(name: str) -> None:
    gpu = get(name)
    assert lacks_peers_by_name(gpu.smi_name, gpu.usable_bytes) is lacks_peers(gpu)


@pytest.mark.parametrize("name", [name for name in names() if get(name).nvlink in ("yes", "bridge")])
def test_b059_linked_cards_are_left_alone(name: str) -> None:
    assert not lacks_peers(get(name))


def test_b059_one_such_card_is_enough_and_a_set_variable_stays() -> None:
    assert peer_variables([False, False], {}) == {}
    assert peer_variables([False, True], {"NCCL_IB_DISABLE": "0"}) == {"NCCL_P2P_DISABLE": "1"}
