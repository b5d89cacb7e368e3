"""B056: two runs on one machine never meet on one port."""

import os
import socket
from collections.abc import Iterator

import pytest

from launcher.hardware.ports import free_port, holder, is_free


@pytest.fixture
def held() -> Iterator[int]:
    """A port that this process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_b056_a_held_port_is_not_free_and_its_holder_is_named(held: int) -> None:
    assert not is_free(held)
    assert f"PID {os.getpid()} (" in holder(held)


def test_a_port_held_on_every_address_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        assert not is_free(listener.getsockname()[1])


def test_b056_a_free_port_can_be_listened_on(held: int) -> None:
    port = free_port()
    assert port != held
    assert is_free(port)


def test_nobody_is_named_for_a_free_port() -> None:
    assert "cannot see" in holder(free_port())
