"""B056: two runs on one machine never meet on one port."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.hardware import ports
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


def test_b056_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("0.0.0.0", free_port())) as server:
        assert not is_free(server.getsockname()[1])


def test_b056_starts_draw_ports_that_the_kernel_gives_to_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "range"
    monkeypatch.setattr(ports, "_KERNELS_OWN", known)
    known.write_text("21000\t60999\n")
    drawn = {free_port() for _ in range(20)}
    assert len(drawn) > 1
    assert all(20_000 <= port < 21_000 for port in drawn)


@pytest.mark.parametrize("text", ["1024\t65535\n", ""])
def test_where_the_kernel_leaves_no_ports_it_is_asked_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    known = tmp_path / "range"
    monkeypatch.setattr(ports, "_KERNELS_OWN", known)
    known.write_text(text)
    assert free_port() > 1024


def test_nobody_is_named_for_a_port_without_a_listener() -> None:
    with socket.socket() as bound:  # held, so that nobody else can listen there meanwhile
        bound.bind(("127.0.0.1", 0))
        assert "cannot see" in holder(bound.getsockname()[1])
