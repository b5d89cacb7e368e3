"""Folders of checkpoints: what counts as whole, and which ones may go."""

import json
from pathlib import Path

import pytest

from launcher.train.checkpoint import MANIFEST, _entry, fault, newest_whole, prune, steps_saved


def checkpoint(folder: Path, step: int) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "state-0000-0000.safetensors").write_bytes(b"weights")
    entries = {"state-0000-0000.safetensors": _entry(path / "state-0000-0000.safetensors")}
    (path / MANIFEST).write_text(json.dumps({"format": 1, "step": step, "files": entries}))
    return path


def test_a_checkpoint_with_its_sizes_and_hashes_is_whole(tmp_path: Path) -> None:
    assert fault(checkpoint(tmp_path, 1)) is None


@pytest.mark.parametrize("content", [b"", b"weightX", b"weights and more"])
def test_b051_another_content_is_found(content: bytes, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 1)
    (path / "state-0000-0000.safetensors").write_bytes(content)
    assert "state-0000-0000.safetensors" in (fault(path) or "")


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"files": 3}', '{"files": {"a": 1}}', "null"])
def test_b051_a_damaged_manifest_is_found_not_raised(manifest: str, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 1)
    (path / MANIFEST).write_text(manifest)
    assert fault(path)


def test_b051_the_newest_whole_one_is_chosen_and_the_others_named(tmp_path: Path) -> None:
    for step in (2, 4, 10):
        checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-10" / MANIFEST).unlink()
    (tmp_path / ".writing-checkpoint-12").mkdir()
    found, passed = newest_whole(tmp_path)
    assert found == tmp_path / "checkpoint-4"
    assert passed == ["checkpoint-10 is not whole (manifest.json is missing): passed over"]


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert newest_whole(tmp_path) == (None, [])


@pytest.mark.parametrize(
    ("limit", "best", "left"),
    [
        (2, None, [3, 4]),
        (1, None, [4]),
        (2, 1, [1, 3, 4]),
        (1, 2, [2, 4]),
        (None, None, [1, 2, 3, 4]),
        (9, None, [1, 2, 3, 4]),
    ],
)
def test_the_newest_and_the_best_are_never_removed(
    limit: int | None, best: int | None, left: list[int], tmp_path: Path
) -> None:
    for step in (1, 2, 3, 4):
        checkpoint(tmp_path, step)
    prune(tmp_path, limit=limit, keep=best)
    assert steps_saved(tmp_path) == left
