"""A model folder counts only when its tensors are whole and have the size that was predicted."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from launcher.errors import ExportError
from launcher.train.final_model import write_model
from launcher.train.save_failure import SaveFailed
from tests.train.disks import fill, small_disk


class Model:
    """Saves what it is given, as transformers does, or spoils it first."""

    def __init__(self, manner: str = "") -> None:
        self.manner = manner

    def save_pretrained(self, folder: Path, state_dict: dict[str, Any], **_: Any) -> None:
        tensors = dict(state_dict)
        if self.manner == "empties":
            tensors["b"] = torch.zeros(0)
        if self.manner == "doubles":
            tensors["copy"] = tensors["a"].clone()
        if self.manner == "forgets":
            del tensors["a"]
        if self.manner == "nothing":
            return
        save_file(tensors, folder / "model.safetensors")


class Tokenizer:
    def save_pretrained(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{}")


WEIGHTS = {"a": torch.ones(400, 100), "b": torch.ones(300, 100)}
SHAPES = {"a": (400, 100), "b": (300, 100)}


def write(folder: Path, manner: str = "", weights: dict[str, Any] = WEIGHTS) -> None:
    write_model(
        folder,
        model=Model(manner),
        tokenizer=Tokenizer(),
        weights=weights,
        facts={"steps": 1},
        expected=SHAPES,
        is_whole=True,
    )


def test_a_whole_model_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    folder = tmp_path / "final"
    folder.mkdir()
    (folder / "old").touch()
    write(folder)
    assert load_file(folder / "model.safetensors").keys() == WEIGHTS.keys()
    assert [path.name for path in tmp_path.iterdir()] == ["final"] and not (folder / "old").exists()


@pytest.mark.parametrize("manner", ["empties", "doubles", "forgets", "nothing"])
def test_b048_files_that_are_not_what_was_predicted_do_not_count(tmp_path: Path, manner: str) -> None:
    with pytest.raises(ExportError):
        write(tmp_path / "final", manner)
    assert not list(tmp_path.iterdir())


def test_b048_a_placeholder_is_not_a_weight(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"a is \[0\] instead of \[400, 100\]"):
        write(tmp_path / "final", weights=WEIGHTS | {"a": torch.zeros(0)})
    with pytest.raises(ExportError, match=r"1 weights are missing \(b"):
        write(tmp_path / "final", weights={"a": WEIGHTS["a"]})


def test_a_full_disk_keeps_the_older_model_and_tells_what_is_needed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        write(disk / "final")
        filler = fill(disk, left_bytes=50_000)
        with pytest.raises(SaveFailed) as failed:
            write(disk / "final")
        assert failed.value.exit_code == 75
        assert "273.4 KiB are needed" in str(failed.value) and "--resume" in str(failed.value)
        assert sorted(path.name for path in disk.iterdir()) == ["filler", "final"]
        filler.unlink()
        write(disk / "final")
