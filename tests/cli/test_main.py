"""The dispatcher: verbs found in the folder, mistakes told, heavy libraries left alone."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from launcher import __version__
from launcher.cli import main as dispatcher
from launcher.cli.main import verbs

HEAVY = ("torch", "transformers", "accelerate", "deepspeed", "peft", "datasets", "numpy")


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["help"]])
def test_the_overview_names_every_verb(run_verb: Any, arguments: list[str]) -> None:
    code, out, err = run_verb(*arguments)
    assert code == 0 and not err
    for verb in verbs():
        assert f"  {verb} " in out


def test_the_verbs_are_the_files_of_the_folder(root: Path) -> None:
    files = {path.stem.rstrip("_") for path in (root / "launcher" / "cli").glob("[a-z]*.py")} - {"main"}
    assert set(verbs()) == files
    assert verbs()[:4] == ["ls", "cat", "cp", "check"]


def test_the_version(run_verb: Any) -> None:
    assert run_verb("--version")[:2] == (0, f"launcher {__version__}\n")


def test_an_unknown_verb_names_the_nearest(run_verb: Any) -> None:
    code, out, err = run_verb("chek")
    assert (code, out) == (2, "")
    assert "unknown verb 'chek'" in err
    assert "launcher check" in err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lint", "check --ds FILE"),
        ("train", "launcher run RECIPE"),
        ("Resume", "--resume"),
        ("list", "launcher ls"),
        ("chat", "launcher predict RUN"),
        ("evaluate", "launcher eval RUN"),
        ("init", "launcher cp quickstart mine.yaml"),
    ],
)
def test_a_verb_of_elsewhere_names_ours(run_verb: Any, typed: str, meant: str) -> None:
    code, _, err = run_verb(typed)
    assert code == 2
    assert meant in err


def test_the_verbs_named_for_those_of_elsewhere_are_there() -> None:
    assert {typed.split()[0] for typed in dispatcher.OTHER_VERBS.values()} <= set(verbs())
    assert not set(dispatcher.OTHER_VERBS) & set(verbs())


@pytest.mark.parametrize("typed", [["--learning-rate", "1e-3"], ["--learning_rate=1e-3"], ["--lr", "1e-3"]])
def test_options_of_a_recipe_are_settings_in_every_verb(run_verb: Any, typed: list[str]) -> None:
    code, out, _ = run_verb("cat", "quickstart", *typed)
    assert code == 0
    assert "learning_rate: 0.001" in out or "learning_rate: 1e-3" in out
    assert run_verb("check", "quickstart", *typed)[0] == 0


def test_a_locale_of_ascii_shows_every_letter(tmp_path: Path) -> None:
    (tmp_path / "配方.yaml").write_text("extends: quickstart\nsummary: 说明\n", encoding="utf-8")
    code = "import sys; from launcher.cli.main import main; sys.exit(main(['cat', '配方.yaml']))"
    environ = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, "extends: quickstart\nsummary: 说明\n")


def test_a_known_error_of_a_library_is_told_beneath_its_traceback(
    run_verb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb = ModuleType("full")

    def fill_up(args: object) -> int:
        raise OSError(28, "No space left on device")

    verb.SUMMARY, verb.add_arguments, verb.run = "", lambda parser: None, fill_up  # type: ignore[attr-defined]
    monkeypatch.setattr(dispatcher, "_verb", lambda name: verb)
    code, _, err = run_verb("ls")
    assert code == 1
    assert "Traceback" in err
    assert "a disk is full" in err


@pytest.mark.parametrize("verb", ["ls", "cat", "cp", "check"])
def test_every_verb_has_help(run_verb: Any, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run_verb(verb, "--help")
    assert caught.value.code == 0
    assert f"usage: launcher {verb}" in capsys.readouterr().out


def test_an_unknown_flag_is_a_usage_error(run_verb: Any) -> None:
    with pytest.raises(SystemExit) as caught:
        run_verb("ls", "--jsn")
    assert caught.value.code == 2


def test_an_interrupt_is_130_without_a_traceback(run_verb: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    verb = ModuleType("interrupted")

    def interrupt(args: object) -> int:
        raise KeyboardInterrupt

    verb.SUMMARY, verb.add_arguments, verb.run = "", lambda parser: None, interrupt  # type: ignore[attr-defined]
    monkeypatch.setattr(dispatcher, "_verb", lambda name: verb)
    assert run_verb("ls") == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["ls"],
        ["ls", "--json"],
        ["cat", "quickstart"],
        ["cat", "qwen2.5_7b_lora_3090", "--provenance"],
        ["cp", "quickstart", "mine.yaml"],
        ["check"],
        ["check", "quickstart", "gpu=t4", "adapter=lora"],
        ["check", "no-such-recipe"],
        [],
    ],
)
def test_the_recipe_verbs_leave_heavy_libraries_alone(
    fresh: Callable[..., subprocess.CompletedProcess[str]], arguments: list[str]
) -> None:
    code = (
        "import sys; from launcher.cli.main import main; main(sys.argv[1:]);"
        f"print('loaded:', sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = fresh("-c", code, *arguments)
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_the_check_of_heavy_libraries_would_notice_one(
    fresh: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = fresh("-c", f"import sys, numpy; print(sorted(set({HEAVY!r}) & set(sys.modules)))")
    assert done.stdout.strip() == "['numpy']"


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    command = f"{sys.executable} -m launcher cat lora_7b_3090 --provenance | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
