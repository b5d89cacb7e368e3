"""Fixtures for every test: nothing leaks from one test into the next, and where shared data lies."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]

# The same examples every time, however long one takes: a loaded machine finds nothing that a quick one does
# not. More and other ones: `pytest --hypothesis-profile=default`.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

# Written by libraries at import, once, and harmless: everything else is a leak.
_LIBRARY_VARIABLES = {
    *("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "HYPOTHESIS_DATABASE_FILE"),
    *("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"),
    *("PYTORCH_NVML_BASED_CUDA_CHECK", "DS_ACCELERATOR"),
    *("TF2_BEHAVIOR", "TPU_ML_PLATFORM"),
}
# Threads that libraries keep for the whole life of the process.
_LIBRARY_THREADS = ("tqdm", "pt_", "ThreadPoolExecutor", "asyncio", "IPythonHistory", "Dummy")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real data sets that may not be copied into the project; the test skips where they are absent."""
    folder = Path(os.environ.get("LAUNCHER_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data sets at {folder}; LAUNCHER_SHARED_DATA may name another folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def tokens_are_kept_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, and no run that a test starts, touches the person's own cache."""
    given = os.environ.get("LAUNCHER_CACHE")
    os.environ["LAUNCHER_CACHE"] = str(tmp_path_factory.mktemp("launcher-cache"))
    yield
    os.environ.pop("LAUNCHER_CACHE")
    if given is not None:
        os.environ["LAUNCHER_CACHE"] = given


@pytest.fixture(scope="session", autouse=True)
def servers_of_this_machine_are_asked_directly() -> Iterator[None]:
    """Where a proxy leads out, it leads to no server that a test starts."""
    before = {name: os.environ.get(name) for name in ("no_proxy", "NO_PROXY")}
    if any(name.lower().endswith("_proxy") for name in os.environ):
        others = before["no_proxy"] or before["NO_PROXY"] or ""
        os.environ |= dict.fromkeys(before, ",".join(filter(None, [others, "127.0.0.1", "localhost"])))
    yield
    for name, value in before.items():
        if os.environ.get(name) != value:
            _restore(name, value)


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    """Fail a test that leaves an environment variable, a thread, a process group or a folder change."""
    variables, threads, folder = dict(os.environ), set(threading.enumerate()), Path.cwd()
    yield
    leaks = [*_changed_variables(variables), *_new_threads(threads), *_process_group()]
    if Path.cwd() != folder:
        os.chdir(folder)
        leaks.append("the working directory")
    assert not leaks, f"left behind: {', '.join(leaks)}"


def _changed_variables(before: dict[str, str]) -> Iterator[str]:
    names = {name for name in before.keys() | os.environ.keys() if before.get(name) != os.environ.get(name)}
    for name in sorted(names - _LIBRARY_VARIABLES):
        _restore(name, before.get(name))
        yield f"variable {name}"


def _restore(name: str, value: str | None) -> None:
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


def _new_threads(before: set[threading.Thread]) -> Iterator[str]:
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=0 if thread.daemon else 30)  # one that is ending is no leak
        if thread.is_alive() and not thread.daemon and not thread.name.startswith(_LIBRARY_THREADS):
            yield f"thread {thread.name}"


def _process_group() -> Iterator[str]:
    """Looked up without importing torch: most tests never do."""
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()
        yield "a process group"
