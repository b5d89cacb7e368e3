"""However a run ends, nothing of it is left: no process, port, shared memory or temporary file.

Twenty of every kind in a row on every backend: `python -m pytest tests/process/test_clean_ends.py -m long`,
or, with a line a run and the counts, `python -m tests.process.ending 20 [success] [mistake] ...`.
"""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from multiprocessing import resource_tracker, shared_memory
from pathlib import Path

import pytest

from tests.process import traces
from tests.process.ending import BACKENDS, CODES, Ending, faults, write_recipe

TIMES = 20
FAMILIES = [
    ("single_gpu", "killed rank"),
    ("multi_gpu", "interrupt"),
    ("zero2", "killed rank"),
    ("zero3", "mistake"),
    ("fsdp2", "success"),
]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe that trains in a moment."""
    return write_recipe(tmp_path_factory.mktemp("clean_ends"))


@pytest.fixture
def listener() -> Iterator[tuple[str, int]]:
    """A process that carries a mark and listens on a port: the mark, the pid."""
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(flush=True); input()"
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {traces.MARK: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stdin
    process.stdout.readline()
    yield mark, process.pid
    process.communicate()


def test_a_process_and_its_port_are_found_by_the_mark(listener: tuple[str, int]) -> None:
    mark, pid = listener
    assert traces.marked(mark) == [pid]
    assert len(traces.ports_of([pid])) == 1


def test_a_port_is_found_as_long_as_anybody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)):
        ports = traces.ports_of([os.getpid()])
        assert ports
    assert not ports & traces.listening()


@pytest.mark.skipif(not traces.SHM.is_dir(), reason=f"no shared memory at {traces.SHM} here")
def test_shared_memory_that_nobody_uses_any_more_is_found() -> None:
    before = traces.shared_memory()
    memory = shared_memory.SharedMemory(create=True, size=64)
    name = memory.name.lstrip("/")
    try:
        assert name in traces.shared_memory() - before
        assert name not in traces.abandoned({name})
        memory.close()
        assert traces.abandoned({name}) == {name}
    finally:
        memory.unlink()
        resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "kind"), FAMILIES)
def test_nothing_is_left_behind(recipe: Path, tmp_path: Path, backend: str, kind: str) -> None:
    found, _ = faults(Ending(recipe, tmp_path / "run", backend, kind))
    assert not found, "\n".join(found)


@pytest.mark.long
@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_twenty_in_a_row_leave_nothing_behind(recipe: Path, tmp_path: Path, backend: str, kind: str) -> None:
    runs = [Ending(recipe, tmp_path / str(turn), backend, kind) for turn in range(TIMES)]
    found = [f"run {turn}: {fault}" for turn, run in enumerate(runs) for fault in faults(run)[0]]
    assert not found, "\n".join(found)
