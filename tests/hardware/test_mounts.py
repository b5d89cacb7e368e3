"""Disks by mount point, with tables and figures of machines that are not here."""

import os
from pathlib import Path

from launcher.hardware.mounts import biggest_folder, mount_of, mount_points, room_at, rooms

TABLE = "23 1 8:1 / / rw - overlay overlay rw\n24 23 8:17 / /root/autodl-tmp rw - xfs /dev/vdb rw\n"


def figures(free_gib: int, *, files: int = 10**6, free_files: int = 10**5) -> os.statvfs_result:
    """30 GiB in blocks of 4 KiB."""
    block = 4096
    return os.statvfs_result(
        (block, block, 30 * 2**30 // block, 0, free_gib * 2**30 // block, files, 0, free_files, 0, 255, 0)
    )


def test_a_folder_lies_on_the_longest_mount_point_above_it(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(TABLE + "25 23 8:2 / /a\\040b rw - ext4 /dev/c rw\n")
    known = mount_points(tmp_path)
    assert known == [Path("/"), Path("/root/autodl-tmp"), Path("/a b")]
    inner = tmp_path / "disk"
    (inner / "cache").mkdir(parents=True)
    assert mount_of(inner / "cache/not/there/yet", [Path("/"), inner]) == inner
    assert mount_of(tmp_path, [Path("/"), inner]) == Path("/")
    (tmp_path / "link").symlink_to(inner / "cache")
    assert mount_of(tmp_path / "link/x", [Path("/"), inner]) == inner


def test_a_machine_without_a_table_has_one_disk(tmp_path: Path) -> None:
    assert mount_points(tmp_path) == [Path("/")]


def test_bytes_and_files_are_told_in_one_line() -> None:
    room = room_at(Path("/"), lambda path: figures(3))
    assert room.line() == "/: 3.0 GiB free of 30.0 GiB, room for 100,000 files"
    assert room_at(Path("/"), lambda path: figures(3, files=0)).free_files is None


def test_places_on_one_disk_are_told_once(tmp_path: Path) -> None:
    found = rooms({"a": tmp_path / "a", "b": tmp_path / "b"}, [Path("/"), tmp_path], lambda path: figures(1))
    assert [*found] == [tmp_path]


def test_this_machines_own_figures_are_those_of_the_kernel(tmp_path: Path) -> None:
    mount = mount_of(tmp_path, mount_points())
    assert room_at(mount).total_bytes == os.statvfs(tmp_path).f_blocks * os.statvfs(tmp_path).f_frsize


def test_the_biggest_folder_is_found_and_links_are_not_followed(tmp_path: Path) -> None:
    for name, size in (("small", 10), ("large", 1000)):
        (tmp_path / "home" / name / "deep").mkdir(parents=True)
        (tmp_path / "home" / name / "deep/file").write_bytes(b"x" * size)
    (tmp_path / "home/linked").symlink_to("/usr")
    assert biggest_folder([tmp_path / "home", tmp_path / "absent"], tmp_path) == (
        tmp_path / "home/large",
        1000,
    )
    assert biggest_folder([tmp_path / "home"], tmp_path / "elsewhere") is None
