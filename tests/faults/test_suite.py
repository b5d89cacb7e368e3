"""A short form of the fault suite: one fault of every kind; `make fault-test` is the long one."""

import subprocess
import sys
from collections import Counter

import pytest

from tests.faults.drawn import BACKENDS, KINDS, cases
from tests.launching import ROOT


@pytest.mark.slow
def test_one_fault_of_every_kind_leaves_the_numbers_alone() -> None:
    command = [sys.executable, "-m", "tests.faults.suite", "--faults", str(len(KINDS)), "--seed", "5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_long_form_hits_every_kind_and_backend() -> None:
    drawn = list(cases(210, seed=1))
    assert min(Counter(case.kind for case in drawn).values()) >= 8
    assert {case.backend for case in drawn} == set(BACKENDS)
    assert sum(case.num_ranks > 1 for case in drawn) >= 105


def test_a_seed_makes_the_same_faults_again() -> None:
    first, again, other = (repr(list(cases(30, seed=seed))) for seed in (4, 4, 5))
    assert first == again != other
