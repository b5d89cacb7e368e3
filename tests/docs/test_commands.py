"""What the manual says to type can be typed: verbs, options, recipes, keys, targets of make, files."""

import argparse
import re
from typing import Any

import pytest

from launcher.backends.options import BACKENDS
from launcher.cli.main import main, module_of, verbs
from launcher.errors import LauncherError
from launcher.process.arguments import read
from launcher.recipe import library
from launcher.recipe.overrides import read_override
from launcher.recipe.translate import translate
from tests.docs.manual import ROOT, Place, inline, is_placeholder, typed, words_of

STRICT = [*typed("bash")]
LOOSE = [*typed("sh"), *inline("launcher ")]
NAMES_RECIPE = ("run", "plan", "check", "cat", "cp", "compile", "prepare", "rehearse", "doctor", "compare")
# Verbs that answer in about a second and write nothing.
QUICK = ("ls", "cat", "check", "keys", "plan", "matrix", "import")


def parsed(words: list[str]) -> dict[str, Any]:
    """A command's options and settings, by its verb's real parser. Raises LauncherError or SystemExit."""
    assert words[0] in verbs(), f"no verb {words[0]}"
    module = module_of(words[0])
    if hasattr(module, "GRAMMAR"):
        reader = read(words[1:], module.GRAMMAR)
        return {**reader.options, "overrides": reader.overrides}
    parser = argparse.ArgumentParser(prog=words[0], allow_abbrev=False)
    module.add_arguments(parser)
    return vars(parser.parse_intermixed_args(words[1:]))


def faults(words: list[str], *, strict: bool) -> list[str]:
    """What a command names and is not there."""
    try:
        options = parsed(words)
    except (LauncherError, SystemExit) as error:
        return [str(error)]
    found = []
    for name in recipes_in(words[0], options):
        if not (is_placeholder(name) or name in library.names() or (not strict and name.endswith(".yaml"))):
            found.append(f"no recipe {name}")
    backend = options.get("backend")
    if backend and not is_placeholder(str(backend)) and backend not in BACKENDS.names():
        found.append(f"no backend {backend}")
    for setting in (*(options.get("overrides") or ()), *settings_in(options)):
        found += setting_faults(setting)
    for name in ("ds", "config_file"):
        value = options.get(name)
        if strict and value and not (ROOT / str(value)).is_file():
            found.append(f"no file {value}")
    return found


def recipes_in(verb: str, options: dict[str, Any]) -> list[str]:
    if verb not in NAMES_RECIPE:
        return []
    named = [options["recipe"]] if options.get("recipe") else []
    return [*named, *(word for word in options.get("recipes") or () if "=" not in word)]


def settings_in(options: dict[str, Any]) -> list[str]:
    return [word for word in options.get("recipes") or () if "=" in word]


def setting_faults(text: str) -> list[str]:
    """A setting whose key is not known. Values that stand for one's own are not judged."""
    try:
        layer = translate(read_override(text))
    except LauncherError as error:
        return [str(error)]
    return [problem.what for problem in layer.problems]


@pytest.mark.parametrize("place", STRICT, ids=lambda place: place.name)
def test_a_command_of_the_manual_can_be_typed(place: Place) -> None:
    wrong = [fault for words in words_of(place.text) for fault in faults(words, strict=True)]
    assert wrong == []


@pytest.mark.parametrize("place", LOOSE, ids=lambda place: place.name)
def test_a_command_in_passing_can_be_typed(place: Place) -> None:
    if place.text.endswith(("-h", "--help")):
        return
    words = [each for each in words_of(place.text) if len(each) > 1]
    wrong = [fault for each in words for fault in faults(each, strict=False)]
    assert wrong == []


@pytest.mark.parametrize("place", [*inline("launcher ")], ids=lambda place: place.name)
def test_a_verb_in_passing_is_there(place: Place) -> None:
    verb = place.text.split()[1]
    assert verb in verbs() or is_placeholder(verb) or verb.startswith("-"), verb


SETTING = re.compile(r'^"?([a-z][a-z0-9_]*(?:\.[a-z_]+)*)=\S.*$')
SETTINGS = [place for start in ("", '"') for place in inline(start) if SETTING.match(place.text)]
SETTINGS = [place for place in SETTINGS if not place.text.startswith("key=")]


@pytest.mark.parametrize("place", dict.fromkeys(SETTINGS), ids=lambda place: place.name)
def test_a_setting_in_passing_has_a_key(place: Place) -> None:
    text = place.text.strip('"').replace("...", "1")
    first = text.split(" ")[0] if not any(sign in text for sign in '{["') else text
    assert setting_faults(first) == [] or "=" not in first


@pytest.mark.parametrize("place", [*typed("bash"), *inline("make ")], ids=lambda place: place.name)
def test_a_target_of_make_is_there(place: Place) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|&& |; )make ([a-z][a-z-]*)", place.text))
    assert named <= targets


def quick() -> list[str]:
    """Commands of the manual that can be run here and now: quick, local, nothing written."""
    lines = [words for place in STRICT for words in words_of(place.text)]
    kept = [
        words
        for words in lines
        if words[0] in QUICK
        and not {"--ask-hub", "--trace", "--png", "--svg", "--sweep"} & set(words)
        and not any(is_placeholder(word) for word in words[1:])
    ]
    return sorted({"\x00".join(words) for words in kept})


@pytest.mark.parametrize("line", quick(), ids=lambda line: line.replace("\x00", " "))
def test_a_quick_command_of_the_manual_runs(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 or, where a plan does not fit and says so, 1: never a usage error, never a traceback."""
    monkeypatch.chdir(ROOT)
    code = main(line.split("\x00"))
    said = capsys.readouterr()
    assert code in (0, 1), said.err
    assert said.out


def test_there_are_commands() -> None:
    assert len(STRICT) > 40
    assert len(LOOSE) > 40
    assert len(quick()) > 8


def test_the_checks_find_what_is_wrong() -> None:
    for line in (
        "plan no_such_recipe",
        "plan quickstart --gpu rtx3090 learning_rte=1",
        "run quickstart --backend zero9",
        "run quickstart --recpe x",
        "ls --no-such-option",
    ):
        assert faults(line.split(), strict=True), line
    assert setting_faults("no_such_key=1")
