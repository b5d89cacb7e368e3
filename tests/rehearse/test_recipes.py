"""Every shipped recipe is rehearsed on one process and on a sharded backend, without a network.

The quick ones run always; the rest with `pytest -m long tests/rehearse` (a few minutes).
"""

import itertools
import json
import os
import re

import pytest

from launcher.backends.operators import ASYNC_IO, is_compiled
from launcher.backends.options import BACKENDS
from launcher.recipe import library
from tests.rehearse.conftest import Rehearse

_QUICK = {("quickstart", "single_gpu"), ("lora_7b_3090", "zero3"), ("bert_base_imdb_3090", "zero3")}
_SHARDED = ("zero3", "fsdp2", "zero2")
# A classifier and a language model on every other backend of several processes.
_TASKS = ("quickstart", "quickstart_lm")
_OTHERS = ("multi_gpu", "zero1", "zero2_offload", "zero3_offload", "fsdp2_offload", "zero3_nvme")


def _cells() -> list[object]:
    """Every recipe twice; the sharded backend changes from recipe to recipe."""
    names = library.names()
    cells = {(name, "single_gpu") for name in names} | _QUICK
    for number, name in enumerate(names):
        if not any((name, backend) in cells for backend in _SHARDED):
            cells.add((name, _SHARDED[number % len(_SHARDED)]))
    cells |= set(itertools.product(_TASKS, _OTHERS))
    return [
        pytest.param(*cell, marks=() if cell in _QUICK else pytest.mark.long, id="-".join(cell))
        for cell in sorted(cells)
    ]


@pytest.mark.parametrize(("name", "backend"), _cells())
def test_recipe_is_proven_from_the_first_step_to_the_reloaded_export(
    name: str, backend: str, rehearse: Rehearse
) -> None:
    if backend == "zero3_nvme" and not is_compiled(ASYNC_IO, os.environ):
        pytest.skip("async_io is not compiled; type: python -m launcher.backends.build_torch async_io")
    num_ranks = 1 if backend == "single_gpu" else 2
    done = rehearse(name, "--backend", backend, "--gpus", str(num_ranks), "--json")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    verdict = json.loads(done.stdout)
    assert verdict["passed"] and verdict["failed_stage"] == ""
    assert len(verdict["losses"]) == 12 and None not in verdict["losses"]
    assert 0 < verdict["resumed_at_step"] < verdict["killed_at_step"]
    assert verdict["repeated_steps"]
    assert verdict["logits_difference"] <= 1e-6
    assert re.match(r"(bf16|fp16|fp32): linear layers compute in", verdict["precision"])
    assert verdict["in_use"]
    if BACKENDS.get(backend).sharding.parameters:
        assert "rank 0 (" in verdict["pieces"] and "rank 1 (" in verdict["pieces"]
    else:
        assert verdict["pieces"] == ""


def test_every_recipe_has_a_sharded_cell() -> None:
    cells = [cell.values for cell in _cells()]  # type: ignore[attr-defined]
    for name in library.names():
        assert (name, "single_gpu") in cells
        assert any((name, backend) in cells for backend in _SHARDED)
    for backend in BACKENDS:
        several = backend.max_ranks != 1
        assert any(backend.name == each for _, each in cells) or not several
