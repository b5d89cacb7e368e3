"""The package's own calls, read from its syntax trees: nothing unpickles, runs a shell, or loads code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "launcher").rglob("*.py"))
FORBIDDEN = {
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "cloudpickle.load", "dill.load", "joblib.load"),
    *("os.system", "os.popen", "subprocess.getoutput", "eval", "exec", "marshal.loads", "shelve.open"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "tarfile.open", "shutil.unpack_archive"),
}
# Each with the reason why it is none of a stranger's data.
ALLOWED = {
    ("launcher/process/kept_copy.py", "tarfile.open"): "writes an archive, unpacks none",
    ("launcher/data/spool.py", "marshal.loads"): "what this process wrote into a file that has no name",
}
# Readers that can take pickles: what they must be told, and what they must not be.
MUST = {"torch.load": ("weights_only", True)}
MUST_NOT = {"allow_pickle": True, "shell": True, "trust_remote_code": True, "weights_only": False}


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call in the file by its dotted name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def _keyword(call: ast.Call, name: str) -> object:
    found = [word.value for word in call.keywords if word.arg == name]
    return found[0].value if found and isinstance(found[0], ast.Constant) else None


def faults(path: Path) -> list[str]:
    """What the file calls and may not."""
    place = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    found = []
    for name, call in calls(path):
        if name in FORBIDDEN and (place, name) not in ALLOWED:
            found.append(f"{place}:{call.lineno} {name}")
        if name in MUST and _keyword(call, MUST[name][0]) is not MUST[name][1]:
            found.append(f"{place}:{call.lineno} {name} without {MUST[name][0]}={MUST[name][1]}")
        said = [word for word, value in MUST_NOT.items() if _keyword(call, word) is value]
        found += [f"{place}:{call.lineno} {name} with {word}" for word in said if name not in MUST]
    return found


def test_nothing_that_is_shipped_unpickles_or_runs_a_shell() -> None:
    assert [fault for path in SOURCES for fault in faults(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "pickle.load(file)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "subprocess.run(words, shell=True)",
        "os.system('x')",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
    ],
)
def test_the_reader_of_calls_sees_each_kind(tmp_path: Path, line: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(line)
    assert len(faults(path)) == 1


@pytest.mark.parametrize("line", ["torch.load(path, weights_only=True)", "np.load(path)", "json.load(file)"])
def test_what_is_safe_passes(tmp_path: Path, line: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(line)
    assert faults(path) == []
