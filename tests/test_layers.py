"""Imports point one way, and nothing that the torch-free verbs reach ever imports torch."""

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

HEAVY = ("torch", "transformers", "accelerate", "deepspeed", "peft", "datasets")
PIECES = ("adapters", "backends", "data", "optim", "losses", "metrics", "models")
TORCH_FREE_VERBS = ("main", "ls", "cat", "cp", "check", "compile", "matrix", "import_", "keys")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("launcher", include_external_packages=True)


def first_halves(graph: grimp.ImportGraph) -> list[str]:
    """Every module of the pieces but their torch halves, the recipe, and the verbs that need no torch."""
    modules = {f"launcher.cli.{verb}" for verb in TORCH_FREE_VERBS} & graph.modules
    for package in (*PIECES, "recipe"):
        modules |= graph.find_descendants(f"launcher.{package}")
    return sorted(module for module in modules if not module.endswith("_torch"))


def test_lint_imports_keeps_every_contract(root: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_first_halves_never_reach_a_heavy_library(graph: grimp.ImportGraph) -> None:
    """Imports inside functions count as well."""
    heavy = [name for name in HEAVY if name in graph.modules]
    assert "torch" in heavy
    chains = [
        " -> ".join(chain)
        for module in first_halves(graph)
        for name in heavy
        if (chain := graph.find_shortest_chain(module, name))
    ]
    assert chains == []


def test_importing_every_first_half_loads_no_heavy_library(graph: grimp.ImportGraph) -> None:
    """What the import graph cannot see: modules that are found by name when the program runs."""
    code = (
        "import importlib, sys\n"
        f"for name in {first_halves(graph)!r}: importlib.import_module(name)\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_no_top_level_name_shadows_a_library(root: Path) -> None:
    """A script in `launcher/` has that folder first on its path: `launcher/peft` would hide PEFT."""
    names = {path.stem for path in (root / "launcher").iterdir() if not path.stem.startswith("__")}
    assert "recipe" in names
    assert names.isdisjoint(sys.stdlib_module_names)
    assert names.isdisjoint(
        {*HEAVY, "safetensors", "pydantic", "numpy", "ruamel", "tqdm", "tensorboard", "gguf"}
    )


def test_no_name_says_nothing(root: Path) -> None:
    empty = {"utils", "util", "common", "core", "constants", "types", "helpers", "misc"}
    assert not [path for path in (root / "launcher").rglob("*") if path.stem in empty]
