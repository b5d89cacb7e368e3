"""Replaying a log: the worst moment of every mark and what it is made of."""

import pytest

from launcher.memory.trace_log import Birth, TraceLog, named_by_birth, rounded


def _born(log: TraceLog, num_bytes: int) -> int:
    return log.born(Birth(num_bytes=num_bytes, origin="empty", shape=(num_bytes,), dtype="uint8"))


@pytest.fixture
def log() -> TraceLog:
    """Weights; an activation freed in the backward pass, where a gradient and a workspace come."""
    log = TraceLog()
    log.mark("load")
    log.tags[_born(log, 1024)] = "weights"
    log.mark("forward/first")
    activation = _born(log, 2048)
    log.mark("backward/first")
    gradient = _born(log, 512)
    log.gone(activation)
    log.workspace(700, "kernel")
    log.gone(gradient)
    return log


def test_a_peak_is_the_worst_moment_under_its_mark(log: TraceLog) -> None:
    found = {mark: peak.num_bytes for mark, peak in log.peaks().items()}
    assert found == {"load": 1024, "forward/first": 3072, "backward/first": 3584}


def test_the_tags_of_a_peak_add_up_to_it(log: TraceLog) -> None:
    for peak in log.peaks().values():
        assert sum(peak.by_tag.values()) == peak.num_bytes


def test_what_has_no_tag_is_named_by_where_it_was_born(log: TraceLog) -> None:
    assert log.peaks()["backward/first"].by_tag == {
        "weights": 1024,
        "saved activations": 2048,
        "backward working set": 512,
    }


def test_live_tensors_at_the_peak_are_listed_largest_first(log: TraceLog) -> None:
    rows = log.live_at_peak("backward/first")
    assert [(tag, size) for _, tag, size in rows] == [
        ("saved activations", 2048),
        ("weights", 1024),
        ("backward working set", 512),
    ]


def test_a_resize_counts_from_the_size_before() -> None:
    log = TraceLog()
    log.mark("forward/before")
    number = _born(log, 4096)
    log.resize(number, 0)
    log.resize(number, 1024)
    log.mark("backward/before")
    assert log.peaks()["backward/before"].num_bytes == 1024


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (1, 512), (512, 512), (513, 1024)])
def test_rounding(asked: int, given: int) -> None:
    assert rounded(asked) == given


def test_every_phase_has_names_for_what_is_born_in_it() -> None:
    for phase in ("load", "forward", "backward", "optimizer", "evaluate", "save"):
        assert named_by_birth(f"{phase}/first") != "unnamed"
