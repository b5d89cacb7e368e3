"""A few hundred odd inputs a door, the same every time; thousands: `python -m tests.fuzz --inputs 10000`."""

import os
from pathlib import Path

import pytest

from launcher.errors import BadValue, Problem
from tests.fuzz.guard import Broken, kept
from tests.fuzz.runner import run
from tests.fuzz.targets import TARGETS, Target

INPUTS = {
    "recipe": 150,
    "deepspeed_json": 300,
    "accelerate_yaml": 200,
    "overrides": 120,
    "data": 300,
    "tokens": 60,
    "import": 100,
}
LONG = 2000


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_odd_input_is_taken_or_refused_in_words(target: Target) -> None:
    found = run(target, INPUTS[target.name], 0)
    assert list(found.faults.values()) == []
    assert found.passed + found.refused == found.inputs >= INPUTS[target.name] // 2
    assert found.refused > 0


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_thousands_of_odd_inputs(target: Target) -> None:
    assert list(run(target, LONG, 1).faults.values()) == []


def _refuse() -> None:
    raise BadValue(Problem(what="no", right="yes", type="yes"))


def test_the_guard_tells_a_refusal_from_a_pass(tmp_path: Path) -> None:
    assert kept(_refuse, tmp_path) == "refused"
    assert kept(lambda: (tmp_path / "x").write_text("x"), tmp_path) == "passed"


def test_the_guard_sees_what_is_written_elsewhere(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(Broken, match="outside"):
        kept(lambda: (tmp_path / "x").write_text("x"), inside)
    with pytest.raises(Broken, match=r"os\.mkdir"):
        kept(lambda: (tmp_path / "folder").mkdir(), inside)
    with pytest.raises(Broken, match=r"os\.system"):
        kept(lambda: os.system("true"), inside)
    assert list(tmp_path.iterdir()) == [inside]


def test_the_guard_ends_what_takes_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spin() -> None:
        while True:
            pass

    monkeypatch.setattr("tests.fuzz.guard.CPU_LIMIT_S", 0.2)
    with pytest.raises(Broken, match="CPU time"):
        kept(spin, tmp_path)


def test_anything_but_a_refusal_comes_through(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        kept(lambda: 1 // 0, tmp_path)
