"""`launcher cp`: a copy, and the next command; nothing is overwritten."""

from pathlib import Path
from typing import Any


def test_the_copy_is_good_and_the_next_command_is_told(run_verb: Any, tmp_path: Path) -> None:
    code, out, _ = run_verb("cp", "quickstart", "mine.yaml")
    assert code == 0
    assert out.strip().endswith("launcher check mine.yaml")
    assert run_verb("check", "mine.yaml")[:2] == (0, "mine.yaml: good\n")


def test_a_second_copy_is_refused(run_verb: Any, tmp_path: Path) -> None:
    run_verb("cp", "quickstart", "mine.yaml")
    code, out, err = run_verb("cp", "quickstart_lm", "mine.yaml")
    assert (code, out) == (2, "")
    assert "there already" in err
    assert "MiniLM" in (tmp_path / "mine.yaml").read_text()
