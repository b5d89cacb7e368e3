"""Host memory: ranks x loading, what is offloaded, and the container's limit."""

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.hardware.limits import host_memory_bytes
from launcher.memory.host import host_fits, host_memory
from tests.memory.shapes import ALL_DIVIDED, full, shape, sharded

MODEL = shape("meta-llama/Llama-2-7b-hf")


def _bytes(num_ranks: int) -> int:
    return sum(each.num_bytes for each in host_memory(sharded(full(MODEL), num_ranks=num_ranks)))


@pytest.mark.parametrize("num_ranks", [1, 4, 8])
def test_b021_every_rank_loads_a_copy(num_ranks: int) -> None:
    copies = num_ranks * 4 * MODEL.num_params
    assert copies < _bytes(num_ranks) < copies + num_ranks * 2 * 2**30


def test_b021_a_container_limit_below_that_refuses(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal:  943718400 kB\n",
        "proc/self/cgroup": "0::/\n",
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/memory.max": f"{90 * 2**30}\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    limit = host_memory_bytes(tmp_path).amount
    assert limit == 90 * 2**30
    assert not host_fits(host_memory(sharded(full(MODEL), num_ranks=8)), limit).fits
    assert host_fits(host_memory(sharded(full(MODEL), num_ranks=2)), limit).fits


def test_offloaded_states_and_workers_are_lines_of_their_own() -> None:
    facts = replace(ALL_DIVIDED, offload_optimizer=True, offload_parameters=True)
    setting = sharded(full(MODEL, num_workers=4), "zero3", 2, sharding=facts)
    found = {each.name: each.num_bytes for each in host_memory(setting)}
    assert found["offloaded states"] == 12 * MODEL.num_params
    assert found["offloaded weights"] == 4 * MODEL.num_params
    assert "loading workers" in found


def test_a_checkpoint_written_in_the_background_is_copied_once() -> None:
    plain, copied = (
        {
            term.name: term.num_bytes
            for term in host_memory(replace(sharded(full(MODEL), num_ranks=8), **change))
        }
        for change in ({"shape": MODEL, "num_workers": 400}, {"num_workers": 400, "checkpoint_copy": True})
    )
    assert copied.keys() - plain.keys() == {"checkpoint copy"}
    assert copied["checkpoint copy"] == 12 * MODEL.num_params
