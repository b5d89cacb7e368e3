"""Compiled operators: told from files alone, and what is missing comes with what to type."""

import os
import sys
from pathlib import Path

import pytest

from launcher.backends import operators
from launcher.backends.operators import ASYNC_IO, CPU_ADAM


def built(tmp_path: Path, name: str) -> dict[str, str]:
    """An environment whose extension folder has that operator."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{name}.so").touch()
    return {"TORCH_EXTENSIONS_DIR": str(tmp_path), "PATH": os.environ["PATH"]}


def test_an_operator_is_compiled_where_its_library_is_newer_than_torch(tmp_path: Path) -> None:
    environ = built(tmp_path, "cpu_adam")
    assert operators.is_compiled(CPU_ADAM, environ)
    assert not operators.is_compiled(ASYNC_IO, environ)


def test_one_from_before_the_installed_torch_counts_for_nothing(tmp_path: Path) -> None:
    environ = built(tmp_path, "cpu_adam")
    os.utime(tmp_path / "cpu_adam" / "cpu_adam.so", (1, 1))
    assert not operators.is_compiled(CPU_ADAM, environ)


def test_the_default_folder_is_this_pythons(tmp_path: Path) -> None:
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    for name, is_ours in ((f"{version}_cpu", True), ("py27_cpu", False)):
        folder = tmp_path / name / "torch_extensions" / name / "cpu_adam"
        folder.mkdir(parents=True)
        (folder / "cpu_adam.so").touch()
        assert operators.is_compiled(CPU_ADAM, {"XDG_CACHE_HOME": str(tmp_path / name)}) is is_ours


def test_missing_tools_are_named_with_what_to_type(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "CXX": "no-such-compiler", "TORCH_EXTENSIONS_DIR": str(tmp_path)}
    (found,) = operators.problems(CPU_ADAM, environ)
    assert "no-such-compiler" in found.what
    assert "apt-get install -y g++" in found.type


@pytest.mark.parametrize("has_library", [True, False])
def test_a_missing_library_or_header_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_library: bool
) -> None:
    """The header is looked for by the compiler itself: an include path without it has none."""
    lacking = operators.Operator(
        name="async_io",
        prebuilt="none",
        header="no_such_header.h",
        library="c" if has_library else "no_such_library",
        package="libaio-dev",
    )
    found = operators.problems(lacking, {"PATH": os.environ["PATH"], "TORCH_EXTENSIONS_DIR": str(tmp_path)})
    if operators.missing_tools(dict(os.environ)):
        pytest.skip("no C++ compiler or ninja here: nothing looks for headers")
    (problem,) = found
    assert "apt-get install -y libaio-dev" in problem.type
    assert "zero3_offload" in problem.type


@pytest.mark.parametrize(
    ("has_card", "variables", "is_said"),
    [
        (True, {}, True),
        (True, {"CUDA_HOME": "/opt/cuda"}, False),
        (True, {"DS_ACCELERATOR": "cpu"}, False),
        (False, {}, False),
    ],
)
def test_beside_a_card_the_toolkit_is_asked_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_card: bool,
    variables: dict[str, str],
    is_said: bool,
) -> None:
    (tmp_path / "driver").touch()
    monkeypatch.setattr(operators, "_DRIVER", tmp_path / ("driver" if has_card else "none"))
    monkeypatch.setattr(operators, "_TOOLKIT", tmp_path / "none")
    environ = {"PATH": "/usr/bin:/bin", "TORCH_EXTENSIONS_DIR": str(tmp_path), **variables}
    said = [problem.what for problem in operators.problems(ASYNC_IO, environ)]
    assert any("no CUDA toolkit" in what for what in said) is is_said
    assert not any("toolkit" in problem.what for problem in operators.problems(CPU_ADAM, environ))


def test_torch_stays_out(root: Path) -> None:
    import subprocess

    code = (
        "import os, sys; from launcher.backends import operators as o, disk\n"
        "o.is_compiled(o.CPU_ADAM, os.environ); o.problems(o.ASYNC_IO, os.environ)\n"
        "assert not {'torch', 'deepspeed'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True)
