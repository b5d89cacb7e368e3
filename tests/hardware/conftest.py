"""Machines made of files: control-group trees as containers show them."""

from collections.abc import Callable
from pathlib import Path

import pytest

Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write `path: text` below a pretended root; a host of 900 GiB unless it says otherwise."""

    def write(files: dict[str, str]) -> Path:
        for name, text in ({"proc/meminfo": f"MemTotal: {900 * 2**20} kB\n"} | files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write
