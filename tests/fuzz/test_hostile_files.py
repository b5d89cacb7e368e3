"""Files made to harm: tags, alias bombs, endless nesting, sizes, the kernel's files, names that are paths."""

import gzip
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.backends.accelerate_file import read_file
from launcher.backends.compare import ds_facts
from launcher.backends.lint import read_ds_file
from launcher.data import compression
from launcher.errors import BadValue, DataError, LauncherError
from launcher.models.options import ModelOptions
from launcher.process.arguments import parse
from launcher.recipe.library import find
from launcher.recipe.load import load_recipe
from tests.fuzz.guard import kept

_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
FILES = {
    "bomb": _BOMB,
    "object": "task: !!python/object/apply:os.system ['touch owned']\n",
    "own tag": "%TAG ! tag:x,2000:\n---\ntask: !foo 1\n",
    "recursion": "data: &a {train_file: *a}\n",
    "brackets": "data: " + "[" * 1200,
    "braces": '{"data":' * 1200,
    "size": "# " + "x" * 3_000_000,
    "two documents": "task: classification\n---\ntask: causal_lm\n",
    "twice": "task: classification\ntask: causal_lm\n",
    "digits": '{"train_batch_size": ' + "9" * 5000 + "}",
    "nothing": "",
    "zeros": "\x00" * 100,
}
READERS = (lambda path: load_recipe(str(path)), read_file, read_ds_file)


@pytest.mark.parametrize("read", READERS, ids=["recipe", "accelerate", "deepspeed"])
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused(tmp_path: Path, name: str, read: Callable[[Path], object]) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(FILES[name])
    assert kept(lambda: read(path), tmp_path) == "refused"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), "1e999"])
def test_numbers_that_no_float_holds_are_compared_all_the_same(value: object) -> None:
    config = {"train_micro_batch_size_per_gpu": value, "gradient_accumulation_steps": 2}
    assert ds_facts(config, 2).keys() >= {"training.per_device_train_batch_size"}


@pytest.mark.parametrize("place", ["/proc/self/environ", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/"])
def test_what_is_no_file_on_a_disk_is_no_recipe(tmp_path: Path, place: str) -> None:
    path = tmp_path / "job.yaml"
    path.symlink_to(place)
    with pytest.raises(LauncherError):
        load_recipe(str(path))
    child = tmp_path / "child.yaml"
    child.write_text(f"extends: {place}\n")
    with pytest.raises(LauncherError):
        load_recipe(str(child))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "job.yaml")
    with pytest.raises(LauncherError, match="no regular file"):
        load_recipe(str(tmp_path / "job.yaml"))


@pytest.mark.parametrize("name", ["..", ".", "../x", "a/b", "/tmp/x", "a\\b", "", "  ", "a\nb", "a\x00"])
def test_a_runs_name_is_no_path(name: str) -> None:
    with pytest.raises(BadValue, match="--name"):
        parse(["--recipe", "quickstart", f"--name={name}"])


@pytest.mark.parametrize("name", ["...yaml", "..yaml"])
def test_a_recipe_whose_run_would_lie_above_output_dir_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("extends: quickstart\n")
    with pytest.raises(LauncherError, match="no name for the run's folder"):
        find(str(path))


@pytest.mark.parametrize("name", ["..", "../quickstart.yaml\x00", "quickstart\x00", "a" * 5000, "\n"])
def test_a_name_that_cannot_be_a_file_is_unknown(name: str) -> None:
    with pytest.raises(LauncherError):
        load_recipe(name)


def _unpack(packed: bytes, path: Path) -> bytes:
    return b"".join(compression.unpacked(io.BytesIO(packed), path))


def test_a_packed_file_that_unfolds_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "ALWAYS_ALLOWED_BYTES", 10_000)
    text = b"text,label\n" + b"a" * 5_000_000
    with pytest.raises(DataError, match="unfold to more than"):
        _unpack(gzip.compress(text), tmp_path / "rows.csv.gz")
    zstandard = pytest.importorskip("zstandard", reason="the package zstandard is not installed")
    with pytest.raises(DataError, match="unfold to more than"):
        _unpack(zstandard.compress(text), tmp_path / "rows.csv.zst")


def test_remote_code_is_trusted_only_where_the_recipe_says_so() -> None:
    assert ModelOptions.model_fields["trust_remote_code"].default is False
    loaded = load_recipe("quickstart", ["trust_remote_code=true"])
    assert loaded.recipe.model.trust_remote_code is True
    assert loaded.origins["model.trust_remote_code"].kind == "command line"
