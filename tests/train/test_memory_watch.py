"""Measured memory by phase: read in the first steps only."""

from contextlib import nullcontext

import torch

from launcher.train.memory_watch import STEPS, MemoryWatch, resident_bytes


def test_a_phase_is_read_in_the_first_visits_only() -> None:
    watch = MemoryWatch(torch.device("cpu"))
    kinds = [type(watch.phase("optimizer")) for _ in range(STEPS + 2)]
    assert nullcontext not in kinds[:STEPS] and kinds[STEPS:] == [nullcontext] * 2
    assert type(watch.phase("")) is nullcontext


def test_what_a_phase_holds_is_seen_in_it() -> None:
    watch = MemoryWatch(torch.device("cpu"))
    watch.mark("load")
    with watch.phase("optimizer"):
        held = torch.ones(64 * 2**20 // 4)
    grown = watch.phases["optimizer"] - watch.phases["load"]
    assert grown >= 48 * 2**20 and held.numel()
    found = watch.result()
    assert found["peak_resident_bytes"] >= found["phases"]["optimizer"] * 0.99
    assert found["resident_at_start_bytes"] <= resident_bytes()
