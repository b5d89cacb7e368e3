"""What a wheel holds: the package, and the recipes and configuration files inside it."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return archive.namelist()


def test_recipes_and_their_data_ship_inside_the_package(wheel: list[str], root: Path) -> None:
    shipped = {path.relative_to(root / "recipes") for path in (root / "recipes").rglob("*") if path.is_file()}
    assert len(shipped) > 8
    assert {f"launcher/_recipes/{path.as_posix()}" for path in shipped} <= set(wheel)


@pytest.mark.parametrize("folder", ["ds_configs", "accelerate_configs"])
def test_rendered_files_ship_inside_the_package(folder: str, wheel: list[str], root: Path) -> None:
    names = [path.name for path in (root / folder).iterdir()]
    assert names
    assert {f"launcher/_{folder}/{name}" for name in names} <= set(wheel)


def test_data_files_of_the_package_ship(wheel: list[str]) -> None:
    assert {"launcher/py.typed", "launcher/hardware/gpus.csv", "launcher/run.py"} <= set(wheel)


def test_the_schema_for_editors_ships(wheel: list[str]) -> None:
    docs = [name for name in wheel if name.startswith("launcher/_docs/")]
    assert docs == ["launcher/_docs/recipe.schema.json"]


def test_nothing_else_is_installed(wheel: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"launcher"}
    assert not [name for name in wheel if "__pycache__" in name or name.startswith("launcher/tests")]


def test_every_dependency_has_a_floor_and_torch_is_not_pinned(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    assert [line for line in (*project["dependencies"], *extras) if ">=" not in line] == []
    assert "torch>=2.6" in project["dependencies"]


def test_every_tested_version_belongs_to_a_dependency(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    known = {line.split(">=")[0] for line in (*project["dependencies"], *extras)}
    pins = (root / "constraints/tested.txt").read_text(encoding="utf-8").splitlines()
    names = {line.split("==")[0] for line in pins if "==" in line}
    assert names <= known
    assert known - names <= {"torch", "tqdm"}


def test_the_floors_are_the_versions_that_were_tried(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    floors = dict(line.split(">=") for line in (*project["dependencies"], *extras))
    tried = (root / "constraints/floors.txt").read_text(encoding="utf-8").splitlines()
    for name, version in (line.split("==") for line in tried if "==" in line):
        assert version.startswith(floors[name]), f"{name}: floor {floors[name]}, tried {version}"
