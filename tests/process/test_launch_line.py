"""The file on the line of the accelerate above: found under a /proc of real shape, or not at all."""

import os
from pathlib import Path

import pytest

from launcher.hardware.ports import free_port
from launcher.process.launch_line import config_file_above
from tests.launching import BIN, ROOT, RUN, start

FILE = "mine.yaml"


def process(proc: Path, pid: int, parent: int, words: list[str], cwd: Path) -> None:
    """One process as Linux shows it; its name holds what confuses careless readers of stat."""
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
    (folder / "stat").write_text(f"{pid} (a) b c) S {parent} {pid} 0")
    (folder / "cwd").symlink_to(cwd)


def above(tmp_path: Path, *words: str, between: bool = False, **environ: str) -> Path | None:
    """What is found where a process with these words is the parent, or the parent's parent."""
    (tmp_path / FILE).touch()
    proc, parent = tmp_path / "proc", os.getppid()
    if between:
        process(proc, parent, 999_999, ["python", "-c", "x"], tmp_path)
    process(proc, 999_999 if between else parent, 1, [*words], tmp_path)
    return config_file_above(environ, proc)


@pytest.mark.parametrize(
    "words",
    [
        ("python", "/x/bin/accelerate", "launch", "--config_file", FILE, "launcher/run.py"),
        ("python", "/x/bin/accelerate-launch", f"--config_file={FILE}", "launcher/run.py"),
        ("python", "-m", "accelerate.commands.launch", "--config-file", FILE, "-m", "launcher.run"),
        ("python", "-m", "accelerate.commands.accelerate_cli", "launch", "--config_file", FILE, "a.py"),
    ],
)
@pytest.mark.parametrize("between", [True, False])
def test_every_spelling_is_found_from_the_folder_of_the_launch(
    tmp_path: Path, words: tuple[str, ...], between: bool
) -> None:
    assert above(tmp_path, *words, between=between) == tmp_path / FILE


@pytest.mark.parametrize(
    "words",
    [
        ("bash",),
        ("python", "launcher/run.py", "--config_file", FILE),
        ("python", "/x/bin/accelerate", "launch", "launcher/run.py", "--config_file", FILE),
        ("python", "/x/bin/accelerate", "launch", "--config_file", "nosuch.yaml", "launcher/run.py"),
    ],
)
def test_what_is_not_accelerates_is_not_found(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert above(tmp_path, *words, HF_HOME=str(tmp_path)) is None


def test_the_default_file_is_read_where_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "accelerate").mkdir()
    default = tmp_path / "accelerate" / "default_config.yaml"
    default.touch()
    words = ("python", "/x/bin/accelerate", "launch", "launcher/run.py")
    assert above(tmp_path, *words, HF_HOME=str(tmp_path)) == default


def test_without_proc_nothing_is_found(tmp_path: Path) -> None:
    assert config_file_above({}, tmp_path / "none") is None


@pytest.mark.slow
def test_b003_a_misspelt_key_that_accelerate_lets_pass_is_told_with_its_line(tmp_path: Path) -> None:
    """Accelerate itself takes unknown keys of a block without a word."""
    file = tmp_path / FILE
    file.write_text(
        "distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n"
        "  fsdp_version: 2\n  fsdp_offload_param: true\nmachine_rank: 0\nnum_machines: 1\n"
    )
    command = [str(BIN / "accelerate"), "launch", "--main_process_port", str(free_port())]
    done = start([*command, "--config_file", FILE, str(ROOT / RUN)], cwd=tmp_path)
    assert done.returncode != 0
    assert f"{file}:5  unknown key 'fsdp_config.fsdp_offload_param'" in done.stderr
    assert "did you mean fsdp_offload_params?" in done.stderr
