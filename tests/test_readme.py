"""Both READMEs say the same, and what they say is there: files, commands, targets, recipes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.backends.options import BACKENDS
from launcher.cli.main import verbs
from launcher.recipe import library

NAMES = ("README.md", "README.zh-CN.md")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


def commands(readme: str) -> list[str]:
    """The lines of every bash block, without their comments."""
    blocks = [body for language, body in FENCE.findall(readme) if language == "bash"]
    return [re.sub(r"\s+# .*", "", line) for body in blocks for line in body.splitlines() if line]


def tree(readme: str) -> list[str]:
    """The paths of the block under Files: names in front of the blanks, two columns a level."""
    block = next(body for _, body in FENCE.findall(readme) if body.startswith("launcher/"))
    parents: list[str] = []
    paths = []
    for line in block.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents = [*parents[:depth], name]
        paths.append("".join(parents))
    return paths


def prose(readme: str) -> str:
    return FENCE.sub("", readme)


def tables(readme: str) -> list[list[str]]:
    """The code words of every table row."""
    rows = [line for line in prose(readme).splitlines() if line.startswith("|")]
    return [re.findall(r"`([^`]+)`", row) for row in rows]


def targets(root: Path) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", text(root, "Makefile"), re.MULTILINE))


@pytest.fixture(params=NAMES)
def readme(request: pytest.FixtureRequest, root: Path) -> str:
    return text(root, request.param)


def test_both_have_the_same_structure(root: Path) -> None:
    english, chinese = (prose(text(root, name)) for name in NAMES)
    levels = [[len(mark) for mark in re.findall(r"^(#+) ", one, re.MULTILINE)] for one in (english, chinese)]
    assert levels[0] == levels[1]
    assert len(levels[0]) > 6


def test_both_have_the_same_commands(root: Path) -> None:
    english, chinese = (commands(text(root, name)) for name in NAMES)
    assert english == chinese
    assert "make quickstart" in english


def test_both_have_the_same_files_and_tables(root: Path) -> None:
    english, chinese = (text(root, name) for name in NAMES)
    assert tree(english) == tree(chinese)
    assert len(tables(english)) == len(tables(chinese))
    assert [row[:1] for row in tables(english) if row] == [row[:1] for row in tables(chinese) if row]


def test_the_file_tree_is_the_real_one(readme: str, root: Path) -> None:
    paths = tree(readme)
    assert [path for path in paths if not (root / path).exists()] == []
    assert [path for path in paths if path.endswith("/") != (root / path).is_dir()] == []


def test_no_folder_is_left_out_of_the_tree(readme: str, root: Path) -> None:
    packages = {f"launcher/{path.parent.name}/" for path in (root / "launcher").glob("*/__init__.py")}
    assert packages - set(tree(readme)) == set()


def test_every_target_of_make_is_there(readme: str, root: Path) -> None:
    named = set(re.findall(r"(?:^|`| )make ([a-z-]+)", readme, re.MULTILINE))
    assert {"quickstart", "test"} <= named <= targets(root)


def test_every_command_line_names_what_is_there(readme: str, root: Path) -> None:
    wrong = [f"{line}: {fault}" for line in commands(readme) for fault in faults(line, root)]
    assert wrong == []


def faults(line: str, root: Path) -> Iterator[str]:
    """What a command line names and is not there."""
    words = line.split()
    if words[0] == "launcher" and words[1] not in verbs():
        yield f"no verb {words[1]}"
    if words[:2] in (["launcher", "run"], ["launcher", "check"], ["launcher", "cat"], ["launcher", "cp"]):
        yield from unknown_recipe(words[2])
    for option, value in zip(words, words[1:], strict=False):
        if option == "--recipe":
            yield from unknown_recipe(value)
        if option == "--backend" and value not in BACKENDS.names():
            yield f"no backend {value}"
        if option in ("--config_file", "--ds", "-c", "-r") and not (root / value).is_file():
            yield f"no file {value}"
    if "run.py" in line and "launcher/run.py" not in words:
        yield "not launcher/run.py"


def unknown_recipe(name: str) -> Iterator[str]:
    if name not in library.names():
        yield f"no recipe {name}"


def test_the_checks_find_what_is_wrong(root: Path) -> None:
    for line in (
        "launcher fly quickstart",
        "launcher run no_such_recipe",
        "accelerate launch --config_file accelerate_configs/none.yaml launcher/run.py",
        "python launcher/run.py --recipe no_such_recipe",
        "launcher run quickstart --backend zero9",
    ):
        assert list(faults(line, root)), line


def test_the_table_names_shipped_recipes_once_each(readme: str) -> None:
    listed = [row[0] for row in tables(readme) if row and row[0] in library.names()]
    assert {"quickstart", "lora_7b_3090"} <= set(listed)
    assert len(set(listed)) == len(listed)


def test_the_two_product_commands_stand_as_typed(readme: str) -> None:
    assert "accelerate launch launcher/run.py --recipe lora_7b_3090" in commands(readme)
    assert "deepspeed launcher/run.py --ds ds_configs/zero2.json" in commands(readme)


def test_links_lead_somewhere(readme: str, root: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        assert link.startswith("http") or (root / link).exists(), link


def test_contributing_stays_short(root: Path) -> None:
    assert len(text(root, "CONTRIBUTING.md").splitlines()) < 100


def test_nothing_is_left_to_fill_in(readme: str) -> None:
    assert "@@" not in readme
