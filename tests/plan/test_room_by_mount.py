"""Everything a run brings and writes, disk by disk; refused with the place to move to."""

import os
from pathlib import Path

import pytest

from launcher.data.spool import HELD_BYTES
from launcher.errors import DoesNotFit
from launcher.hardware.placement import placement
from launcher.hardware.platform_facts import find_platform
from launcher.plan.room_by_mount import by_disk, needs_of, require_rooms
from launcher.recipe.load import load_recipe
from launcher.recipe.schema import Recipe
from tests import instance


def figures(free_bytes: int, *, free_files: int = 10**6) -> os.statvfs_result:
    block = 4096
    return os.statvfs_result(
        (block, block, 2**40 // block, 0, free_bytes // block, 10**7, 0, free_files, 0, 255, 0)
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system disk with a home, and a data disk."""
    for name in ("system/home/.cache/old", "data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "system/home/.cache/old/file").write_bytes(b"x" * 5000)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "system/home/.cache/huggingface"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("LAUNCHER_CACHE", str(tmp_path / "data/tokens"))
    monkeypatch.setenv("HOME", str(tmp_path / "system/home"))
    return tmp_path


def recipe(place: Path, *overrides: str) -> Recipe:
    return load_recipe("lora_7b_3090", [f"output_dir={place / 'data/runs'}", *overrides]).recipe


def test_downloads_tokens_and_checkpoints_are_needs_with_their_places(place: Path) -> None:
    train = place / "train.jsonl"
    train.write_text('{"instruction": "a", "input": "", "output": "b"}\n' * 100)
    found = {need.name: need for need in needs_of(recipe(place, f"train_file={train}"), "job")}
    assert {"the model's download", "prepared tokens", "checkpoints", "final model"} <= set(found)
    assert 12 * 2**30 < found["the model's download"].num_bytes < 15 * 2**30
    assert found["prepared tokens"].num_bytes == 2 * train.stat().st_size
    assert found["checkpoints"].place == place / "data/runs/job"


def test_many_rows_lie_on_the_disk_while_they_are_prepared(place: Path) -> None:
    train = place / "train.jsonl"
    train.write_bytes(b"x" * (HELD_BYTES + 1))
    found = {need.name: need for need in needs_of(recipe(place, f"train_file={train}"), "job")}
    assert found["rows while they are prepared"].num_bytes == 3 * train.stat().st_size
    train.write_bytes(b"x")
    assert "rows while they are prepared" not in {
        need.name for need in needs_of(recipe(place, f"train_file={train}"), "job")
    }


def test_what_is_in_the_cache_already_is_not_needed_again(place: Path) -> None:
    plain = recipe(place)
    folder = (
        Path(os.environ["HF_HOME"]) / "hub" / f"models--{plain.model.model_name_or_path.replace('/', '--')}"
    )
    (folder / "blobs").mkdir(parents=True)
    before = next(need for need in needs_of(plain, "job") if "download" in need.name)
    (folder / "blobs/part").write_bytes(b"x" * 4096)
    after = next(need for need in needs_of(plain, "job") if "download" in need.name)
    assert before.num_bytes - after.num_bytes == 4096


def test_b075_a_system_disk_too_small_for_the_download_is_refused_with_where_to_go(place: Path) -> None:
    free = {place / "system": 5 * 2**30, place / "data": 200 * 2**30}
    mounts = [Path("/"), *free]
    with pytest.raises(DoesNotFit) as refused:
        require_rooms(recipe(place), "job", mounts=mounts, statvfs=lambda path: figures(free[Path(path)]))
    said = str(refused.value)
    assert f"disk {place / 'system'}" in said and "5.0 GiB are free" in said
    assert f"the biggest folder there is {place / 'system/home/.cache'}" in said
    assert f"export HF_HOME={place / 'data'}/cache" in said


def test_b075_on_an_instance_the_data_disk_is_the_place(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rented = instance.make(tmp_path / "i")
    platform = find_platform(rented.environ)
    assert platform is not None
    mounts = [Path("/"), place / "system", rented.data_disk]
    free = {place / "system": 2**30, Path("/"): 2**42, rented.data_disk: 2**40}
    with pytest.raises(DoesNotFit, match=f"export HF_HOME={rented.data_disk}/cache"):
        require_rooms(
            recipe(place),
            "job",
            rented.environ,
            mounts=mounts,
            statvfs=lambda path: figures(free[Path(path)]),
        )
    moved = placement(platform, {}, tmp_path)
    monkeypatch.setenv("HF_HOME", moved["HF_HOME"])
    lines = require_rooms(
        recipe(place), "job", rented.environ, mounts=mounts, statvfs=lambda path: figures(free[Path(path)])
    )
    assert any(str(rented.data_disk) in line and "the model's download" in line for line in lines)


def test_one_disk_is_asked_for_the_sum(place: Path) -> None:
    needs = needs_of(recipe(place), "job")
    [whole] = by_disk(needs, [Path("/")], lambda path: figures(2**40))
    assert whole.num_bytes == sum(need.num_bytes for need in needs)
    with pytest.raises(DoesNotFit, match="output_dir|HF_HOME"):
        require_rooms(
            recipe(place), "job", mounts=[Path("/")], statvfs=lambda path: figures(whole.num_bytes - 4096)
        )
    assert require_rooms(
        recipe(place), "job", mounts=[Path("/")], statvfs=lambda path: figures(whole.num_bytes + 4096)
    )


def test_what_an_earlier_start_has_written_is_not_asked_for_twice(place: Path) -> None:
    held = place / "data/runs/job"
    held.mkdir(parents=True)
    needs = needs_of(recipe(place), "job")
    total = sum(need.num_bytes for need in needs)
    (held / "checkpoint").write_bytes(b"x" * 2**20)
    assert require_rooms(
        recipe(place), "job", mounts=[Path("/")], statvfs=lambda path: figures(total - 2**20 + 4096)
    )


def test_a_disk_without_inodes_is_full_whatever_bytes_it_has(place: Path) -> None:
    with pytest.raises(DoesNotFit, match="inodes are used up"):
        require_rooms(
            recipe(place), "job", mounts=[Path("/")], statvfs=lambda path: figures(2**40, free_files=0)
        )
