"""No rank outlives its starter: SIGTERM, SIGKILL and Ctrl-C, on every starter, even for a rank that hangs."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.process.watchdog import parent_of
from tests.process.families import HERE, STARTERS, Family, left_after

MIDDLE = [sys.executable, str(HERE / "middle.py")]
TWO_LEVELS, ONE_LEVEL = [*MIDDLE, str(HERE / "middle.py")], MIDDLE
DEEPSPEED = {"CROSS_RANK": "0", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_SIZE": "2"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "WORLD_SIZE": "2"}


@pytest.fixture
def families() -> Iterator[list[Family]]:
    """Families to be cleaned away after the test."""
    started: list[Family] = []
    yield started
    for family in started:
        family.clean()


@pytest.mark.parametrize("manner", ["willing", "deaf"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(("chain", "variables"), [(ONE_LEVEL, TORCHRUN), (TWO_LEVELS, DEEPSPEED)])
def test_a_rank_ends_when_the_starter_above_it_dies(
    tmp_path: Path,
    families: list[Family],
    chain: list[str],
    variables: dict[str, str],
    number: int,
    manner: str,
) -> None:
    family = Family(chain, tmp_path, manner, **variables)
    families.append(family)
    ranks = family.ranks(1)
    family.end(number)
    assert left_after(ranks) == []


def test_a_shell_above_the_starter_may_go(tmp_path: Path, families: list[Family]) -> None:
    """`nohup torchrun ... &` and a logout: the grandparent of a torchrun rank is no starter."""
    family = Family(TWO_LEVELS, tmp_path, "willing", **TORCHRUN)
    families.append(family)
    ranks = family.ranks(1)
    family.end(signal.SIGKILL)
    assert left_after(ranks, 0.8) == ranks


def test_a_bare_python_start_outlives_its_shell(tmp_path: Path, families: list[Family]) -> None:
    family = Family(ONE_LEVEL, tmp_path, "willing")
    families.append(family)
    ranks = family.ranks(1)
    family.end(signal.SIGKILL)
    assert left_after(ranks, 0.8) == ranks


def test_the_parent_of_a_process_that_is_gone_is_nobody() -> None:
    assert parent_of(2**22 + 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", STARTERS)
@pytest.mark.parametrize(
    ("number", "whole_group"), [(signal.SIGTERM, False), (signal.SIGKILL, False), (signal.SIGINT, True)]
)
def test_real_starters_leave_no_rank(
    tmp_path: Path, families: list[Family], name: str, number: int, whole_group: bool
) -> None:
    command, num_ranks = STARTERS[name]
    family = Family(command, tmp_path, "deaf", DS_ACCELERATOR="cpu")
    families.append(family)
    ranks = family.ranks(num_ranks)
    family.end(number, whole_group)
    assert left_after(ranks) == []


def test_a_forked_worker_neither_speaks_for_the_rank_nor_keeps_its_watchdog(
    tmp_path: Path, families: list[Family]
) -> None:
    """Data workers are ended by SIGTERM at every epoch's end: that is no signal to the rank."""
    family = Family(ONE_LEVEL, tmp_path, "parent of a worker", **TORCHRUN)
    families.append(family)
    (rank,) = family.ranks(1)
    assert left_after([rank], 2.0) == [rank]
