"""The library's rehearsals in forks of one process; all of them: `pytest -m long tests/rehearse`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launcher.process.children import state
from launcher.rehearse.forked import Forked, rank_variables
from tests.rehearse.conftest import LENGTHS


def rehearsed(root: Path, folder: Path, *words: str, limit_s: float) -> list[dict[str, Any]]:
    """The verdicts of `scripts/rehearse_library.py`; asserts that all were passed."""
    verdicts = folder / "verdicts.json"
    done = subprocess.run(
        [sys.executable, root / "scripts/rehearse_library.py", *words, "--json", verdicts],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    found: list[dict[str, Any]] = json.loads(verdicts.read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(verdict["passed"] for verdict in found)
    return found


@pytest.mark.slow
def test_a_few_recipes_by_seed_are_rehearsed_whole(root: Path, tmp_path: Path) -> None:
    found = rehearsed(root, tmp_path, "--some", "3", "--seed", "3", limit_s=1800)
    assert len(found) == 3
    for verdict in found:
        assert len(verdict["losses"]) in LENGTHS and None not in verdict["losses"]
        assert 0 < verdict["resumed_at_step"] < verdict["killed_at_step"]
        assert verdict["logits_difference"] <= 1e-6


@pytest.mark.long
def test_every_recipe_is_rehearsed_whole(root: Path, tmp_path: Path) -> None:
    assert len(rehearsed(root, tmp_path, limit_s=14400)) > 100


def test_forks_say_what_they_return(tmp_path: Path) -> None:
    def work() -> int:
        print("at work")
        return 7

    with Forked([work, lambda: 0], tmp_path / "log") as running:
        assert running.wait() == 7
    assert "at work" in running.text


def test_a_fork_that_raises_never_goes_on_as_its_parent(tmp_path: Path) -> None:
    with Forked([lambda: 1 // 0], tmp_path / "log") as running:
        assert running.wait() == 1
    assert "ZeroDivisionError" in running.text


def test_ranks_that_wait_for_a_failed_one_are_ended(tmp_path: Path) -> None:
    def forever() -> int:
        import time

        time.sleep(600)
        return 0

    with Forked([forever, lambda: 3], tmp_path / "log") as running:
        assert running.wait() == 3
    assert running.running == {}


def test_killed_ranks_are_counted_and_reaped(tmp_path: Path) -> None:
    def forever() -> int:
        import time

        time.sleep(600)
        return 0

    with Forked([forever, forever], tmp_path / "log") as running:
        assert running.wait_until(lambda: True) is None
        assert len(running.kill_ranks()) == 2
        assert running.wait() == -9


def test_ranks_that_are_held_do_nothing_until_they_are_let_go(tmp_path: Path) -> None:
    counted = tmp_path / "counted"

    def count() -> int:
        while not (tmp_path / "enough").exists():
            with counted.open("a") as file:
                file.write("x")
        return 0

    with Forked([count, count], tmp_path / "log") as running:
        assert running.wait_until(counted.exists) is None
        running.hold_ranks()
        held = counted.stat().st_size
        assert [state(pid) for pid in running.running] == ["T", "T"]
        assert counted.stat().st_size == held
        running.let_ranks_go()
        assert running.wait_until(lambda: counted.stat().st_size > held) is None
        (tmp_path / "enough").touch()
        assert running.wait() == 0


def test_variables_are_torchruns() -> None:
    assert rank_variables(0, 1, 5) == {}
    second = rank_variables(1, 2, 5)
    assert (second["RANK"], second["WORLD_SIZE"], second["MASTER_PORT"]) == ("1", "2", "5")
