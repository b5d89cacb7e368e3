"""The AutoDL page says the same in both languages, and what it says is what the program knows."""

import re
from pathlib import Path

import pytest

from launcher.cli.main import verbs
from launcher.hardware.folklore import BELIEFS
from launcher.hardware.placement import MOVED
from launcher.process.after_run import OPTIONS
from launcher.recipe.library import names

PAGES = ("autodl.md", "autodl.zh-CN.md")


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, root: Path) -> str:
    return (root / "docs" / request.param).read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    """Every line of every shell block, without its comment."""
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    return [line.partition("   #")[0].rstrip() for block in blocks for line in block.splitlines()]


def shape(text: str) -> list[str]:
    """Headings by level, table rows by their columns, blocks: the page without its words."""
    marks = []
    for line in text.splitlines():
        if found := re.match(r"(#+ ([0-9]+\.)?|```|\|)", line):
            marks.append(f"|{line.count('|')}" if line.startswith("|") else found.group(0))
    return marks


def test_both_languages_have_the_same_structure_and_commands(root: Path) -> None:
    english, chinese = ((root / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
    assert len(commands(english)) > 15
    assert commands(english) == commands(chinese)
    assert shape(english) == shape(chinese)


def test_every_verb_recipe_and_option_of_the_page_is_there(page: str) -> None:
    typed = [line.split() for line in commands(page) if line.startswith("launcher ")]
    assert {words[1] for words in typed} <= set(verbs())
    named = {words[2] for words in typed if words[1] in ("plan", "check", "prepare", "run")}
    assert named and named <= set(names())
    known = {*OPTIONS, "name", "resume", "notify", "dry_run", "sweep", "fix", "detach"}
    used = {word[2:].replace("-", "_") for words in typed for word in words if word.startswith("--")}
    assert used <= known
    for option in ("--then", "--then_on", "--notify", "--grace", "--copy_to"):
        assert option in page


def test_the_variables_of_the_page_are_those_that_are_set(page: str) -> None:
    """WANDB's two stand at the end of the list."""
    for each in MOVED:
        assert f"`{each.name}`" in page


def test_the_folklore_of_the_page_is_corrected_by_the_doctor(page: str) -> None:
    table = page[page.index("| `NVIDIA_TF32_OVERRIDE") :].split("\n\n")[0]
    told = re.findall(r"^\| `([A-Z0-9_]+)(?:=([^`]*))?`", table, re.MULTILINE)
    beliefs = {belief.name: belief for belief in BELIEFS}
    assert len(told) == 6
    for name, value in told:
        assert beliefs[name].mistaken(value or "/somewhere")
