"""Every backend's cells, run once, at the first asking."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.equivalence.started import SKIPPED, run_cells, write_material

Cells = Callable[[str], tuple[Path, str]]


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny models, the rows, and the two recipes."""
    return write_material(tmp_path_factory.mktemp("equivalence"))


@pytest.fixture(scope="session")
def cells(material: Path) -> Cells:
    """Backend -> (folder of its runs, what it said)."""
    done: dict[str, tuple[Path, str]] = {}

    def run(backend: str) -> tuple[Path, str]:
        if backend in SKIPPED:
            pytest.skip(SKIPPED[backend])
        if backend not in done:
            done[backend] = (material / "runs", run_cells(material, backend))
        return done[backend]

    return run
