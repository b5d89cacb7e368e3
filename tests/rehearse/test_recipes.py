"""Recipes rehearsed as a person types it, starters included, without a network.

The quick ones run always; the rest with `pytest -m long tests/rehearse`. Every recipe of the library is
rehearsed by `scripts/rehearse_library.py`, whose ranks are forks (tests/rehearse/test_library.py).
"""

import itertools
import json
import os
import re

import pytest

from launcher.backends.operators import ASYNC_IO, is_compiled
from launcher.backends.options import BACKENDS
from tests.rehearse.conftest import LENGTHS, Rehearse

_QUICK = {("quickstart", "single_gpu"), ("lora_7b_3090", "zero3"), ("bert_base_imdb_3090", "zero3")}
# The methods and phases that the quick ones do not have.
_KINDS = {
    ("full_0.5b_a100", "fsdp2"),
    ("adapter_0.5b_v100", "zero2"),
    ("prefix_0.5b_v100", "fsdp2"),
    ("ptuning_7b_3090", "zero2"),
    ("qlora_7b_3090", "zero2"),
    ("qwen3_8b_lora_3090", "fsdp2"),
    ("roberta_large_meld_3090", "single_gpu"),
    ("roberta_large_meld_2x3090", "multi_gpu"),
}
# A classifier and a language model on every other backend of several processes.
_TASKS = ("quickstart", "quickstart_lm")
_OTHERS = ("multi_gpu", "zero1", "zero2_offload", "zero3_offload", "fsdp2_offload", "zero3_nvme")


def _cells() -> list[object]:
    """Quick ones, and the others marked long."""
    cells = _QUICK | _KINDS | set(itertools.product(_TASKS, _OTHERS))
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
    assert len(verdict["losses"]) in LENGTHS and None not in verdict["losses"]
    assert 0 < verdict["resumed_at_step"] < verdict["killed_at_step"]
    assert verdict["repeated_steps"]
    assert verdict["logits_difference"] <= 1e-6
    assert re.match(r"(bf16|fp16|fp32): linear layers compute in", verdict["precision"])
    assert verdict["in_use"]
    if BACKENDS.get(backend).sharding.parameters:
        assert "rank 0 (" in verdict["pieces"] and "rank 1 (" in verdict["pieces"]
    else:
        assert verdict["pieces"] == ""


def test_every_backend_of_several_processes_has_a_cell() -> None:
    cells = [cell.values for cell in _cells()]  # type: ignore[attr-defined]
    for backend in BACKENDS:
        several = backend.max_ranks != 1
        assert any(backend.name == each for _, each in cells) or not several
