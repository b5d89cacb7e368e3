"""The final model as one file elsewhere: the same bytes, no earlier copy lost, nothing half written left."""

import tarfile
from pathlib import Path

import pytest

from launcher.errors import DoesNotFit, ExportError
from launcher.hardware import free_space
from launcher.process import kept_copy
from launcher.process.kept_copy import copy_final, require_target


@pytest.fixture
def final(tmp_path: Path) -> Path:
    folder = tmp_path / "runs/job/final"
    (folder / "deep").mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(bytes(range(256)) * 100)
    (folder / "deep/config.json").write_text("{}")
    return folder


def test_the_copy_is_one_file_with_the_same_bytes(final: Path, tmp_path: Path) -> None:
    to = tmp_path / "fs"
    require_target(to)
    target = copy_final(final, to, "job")
    assert [path.name for path in to.iterdir()] == ["job.tar"]
    with tarfile.open(target) as held:
        held.extractall(tmp_path / "back", filter="data")
    for path in (each for each in final.rglob("*") if each.is_file()):
        assert (tmp_path / "back/final" / path.relative_to(final)).read_bytes() == path.read_bytes()


def test_an_earlier_copy_stays(final: Path, tmp_path: Path) -> None:
    to = tmp_path / "fs"
    require_target(to)
    (to / "job.tar").write_text("earlier")
    assert copy_final(final, to, "job").name == "job-2.tar"
    assert (to / "job.tar").read_text() == "earlier"


def test_bytes_that_did_not_arrive_are_found_and_nothing_is_left(
    final: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "fs"
    require_target(to)
    whole = kept_copy._write

    def spoilt(source: Path, temporary: Path) -> None:
        whole(source, temporary)
        data = bytearray(temporary.read_bytes())
        data[data.find(bytes(range(256)))] ^= 1
        temporary.write_bytes(data)

    monkeypatch.setattr(kept_copy, "_write", spoilt)
    with pytest.raises(ExportError, match="did not arrive"):
        copy_final(final, to, "job")
    assert list(to.iterdir()) == []


def test_a_disk_without_room_is_told_before_a_byte_is_written(
    final: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_space, "free_bytes", lambda place: 10)
    with pytest.raises(DoesNotFit, match="10 B are free"):
        copy_final(final, tmp_path, "job")


def test_a_target_that_is_a_file_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="nothing can be copied there"):
        require_target(tmp_path / "file")
