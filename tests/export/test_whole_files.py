"""A weights file that is cut off, or a pointer to one, is told before anything is copied or loaded."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from launcher.errors import ExportError
from launcher.export.whole_files import fault_of, require_whole


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(3, 5), "b": torch.zeros(2, dtype=torch.bfloat16)}, path, {"format": "pt"})
    return path


def test_a_whole_file_is_whole(weights: Path) -> None:
    assert fault_of(weights) == ""
    require_whole(weights.parent)


@pytest.mark.parametrize("kept", [-1, 40, 8, 4, 0])
def test_a_cut_off_file_is_told(weights: Path, kept: int) -> None:
    data = weights.read_bytes()
    weights.write_bytes(data[:kept])
    with pytest.raises(ExportError, match="model.safetensors  this weights file is damaged"):
        require_whole(weights.parent)


@pytest.mark.parametrize(
    "text", ["version https://git-lfs.github.com/spec/v1\n", "\x05\0\0\0\0\0\0\0[1,2]", "x"]
)
def test_what_is_no_such_file_is_told(weights: Path, text: str) -> None:
    weights.write_text(text)
    assert fault_of(weights)
