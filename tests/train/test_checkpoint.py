"""Folders of checkpoints: what counts as whole, and which ones may go."""

import json
from pathlib import Path

import pytest

from launcher.errors import Conflict
from launcher.train.checkpoint_files import (
    MANIFEST,
    clean,
    entry,
    fault,
    newest_whole,
    prune,
    put_in_place,
    set_aside,
    steps_saved,
)
from launcher.train.folder import claim


def checkpoint(folder: Path, step: int) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    (path / "state-0000-0000.safetensors").write_bytes(b"weights")
    entries = {"state-0000-0000.safetensors": entry(path / "state-0000-0000.safetensors")}
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


def spoil(path: Path) -> None:
    (path / "state-0000-0000.safetensors").write_bytes(b"WEIGHTS")


def test_the_last_one_that_verifies_is_never_removed(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        checkpoint(tmp_path, step)
    spoil(tmp_path / "checkpoint-3")
    prune(tmp_path, limit=1, keep=None)
    assert newest_whole(tmp_path)[0] == tmp_path / "checkpoint-2"


def test_nothing_is_removed_where_nothing_verifies(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        spoil(checkpoint(tmp_path, step))
    prune(tmp_path, limit=1, keep=None)
    assert steps_saved(tmp_path) == [1, 2, 3]


def test_the_one_just_written_counts_as_newest_whatever_lies_behind_it(tmp_path: Path) -> None:
    for step in (4, 6, 9):
        checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-9" / MANIFEST).unlink()
    prune(tmp_path, limit=1, keep=None, newest=6)
    assert steps_saved(tmp_path) == [6, 9]


def test_half_ones_before_the_newest_go_and_do_not_count(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        checkpoint(tmp_path, step)
    (tmp_path / "checkpoint-3" / "state-0000-0000.safetensors").unlink()
    prune(tmp_path, limit=2, keep=None)
    assert steps_saved(tmp_path) == [2, 4]


def test_what_a_killed_run_was_writing_or_removing_is_cleaned_away(tmp_path: Path) -> None:
    checkpoint(tmp_path, 1)
    for name in (".writing-checkpoint-2", ".deleting-checkpoint-1", ".writing-final"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part").write_bytes(b"half")
    assert clean(tmp_path) == [".deleting-checkpoint-1", ".writing-checkpoint-2", ".writing-final"]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-1"]


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    old, new = checkpoint(tmp_path, 1), tmp_path / ".writing-checkpoint-1"
    checkpoint(tmp_path / "elsewhere", 1).rename(new)
    (new / "mark").touch()
    put_in_place(new, old)
    assert (old / "mark").exists() and fault(old) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-1", "elsewhere"]


def test_checkpoints_of_a_way_that_was_left_are_not_picked_up(tmp_path: Path) -> None:
    for step in (2, 4, 6):
        checkpoint(tmp_path, step)
    assert set_aside(tmp_path, 2) == ["superseded-checkpoint-4", "superseded-checkpoint-6"]
    assert newest_whole(tmp_path)[0] == tmp_path / "checkpoint-2"


def test_a_manifest_that_names_a_file_elsewhere_is_not_followed(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, 1)
    (tmp_path / "other").write_bytes(b"weights")
    (path / MANIFEST).write_text(json.dumps({"files": {"../other": entry(tmp_path / "other")}}))
    assert "outside" in (fault(path) or "")


def test_another_runs_checkpoint_is_not_mixed_into_a_used_folder(tmp_path: Path) -> None:
    other = checkpoint(tmp_path / "other", 3)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").touch()
    with pytest.raises(Conflict, match="holds a run of its own"):
        claim(tmp_path / "run", resume=str(other), new=False)
    assert claim(tmp_path / "fresh", resume=str(other), new=False).checkpoint == other
    own_one = checkpoint(tmp_path / "run", 2)
    assert claim(tmp_path / "run", resume=str(own_one), new=False).checkpoint == own_one
