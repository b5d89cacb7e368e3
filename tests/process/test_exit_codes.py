"""Exit codes survive the starters, and are said in words."""

from pathlib import Path

import pytest

from launcher.process.exit_codes import EXIT_FILE_VARIABLE, in_words, read_exit_code, write_exit_code


def test_the_first_rank_that_failed_has_the_word(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    for code in (2, 1):
        write_exit_code({EXIT_FILE_VARIABLE: str(path)}, code)
    assert read_exit_code(path) == 2


def test_without_a_supervisor_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_exit_code({}, 2)
    assert list(tmp_path.iterdir()) == []


def test_no_file_or_a_half_written_one_is_no_code(tmp_path: Path) -> None:
    path = tmp_path / "exit.json"
    assert read_exit_code(path) is None
    path.touch()
    assert read_exit_code(path) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "SIGKILL: killed from outside"),
        (137, "SIGKILL: killed from outside"),
        (-7, "/dev/shm"),
        (-11, "SIGSEGV: crashed"),
        (-6, "SIGABRT: aborted"),
        (75, "--resume"),
        (2, "something given is wrong"),
        (0, "done"),
        (42, "exit code 42"),
        (127, "is the environment active?"),
        (-4, "SIGILL: an instruction that this CPU does not have"),
        (-25, "ulimit -f"),
        (-40, "signal 40"),
    ],
)
def test_codes_in_words(code: int, words: str) -> None:
    assert words in in_words(code)
