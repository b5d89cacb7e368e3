"""Errors as people and other ranks get them."""

import pickle

import pytest

from launcher.errors import LauncherError, OutOfMemory, Problem

PROBLEM = Problem(where="job.yaml:3", what="this is wrong", right="that would be right", type="that")


def kinds(base: type[LauncherError]) -> list[type[LauncherError]]:
    return [base, *(kind for below in base.__subclasses__() for kind in kinds(below))]


@pytest.mark.parametrize("kind", kinds(LauncherError), ids=lambda kind: kind.__name__)
def test_an_error_reaches_another_rank_as_it_was(kind: type[LauncherError]) -> None:
    error = kind([PROBLEM, PROBLEM])
    error.concerns_one_rank = not kind.concerns_one_rank
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is kind and received.problems == (PROBLEM, PROBLEM)
    assert str(received) == str(error) and received.exit_code == error.exit_code
    assert received.concerns_one_rank == error.concerns_one_rank


def test_a_message_says_where_what_right_and_what_to_type() -> None:
    lines = str(OutOfMemory(PROBLEM)).splitlines()
    assert lines == ["job.yaml:3  this is wrong", "  right: that would be right", "  type:  that"]
