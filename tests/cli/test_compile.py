"""`launcher compile`: files, what was decided and what to type on standard output; no torch on the way."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_it_says_what_was_written_decided_and_what_to_type(run_verb: Any, tmp_path: Path) -> None:
    words = ["quickstart", "--backend", "zero3", "--gpus", "4", "--gpu", "rtx3090", "--out", "made"]
    code, out, err = run_verb("compile", *words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:4] == [
        f"written made/{name}" for name in ("recipe.yaml", "accelerate.yaml", "ds.json", "command.txt")
    ]
    assert any(
        line.startswith("batch 32: 8 rows x 1 accumulation x 4 rank(s); the most that fit") for line in lines
    )
    assert lines[-2].startswith(
        f"accelerate launch --config_file {tmp_path}/made/accelerate.yaml launcher/run.py"
    )
    assert lines[-1].startswith(f"deepspeed --num_gpus 4 launcher/run.py --ds {tmp_path}/made/ds.json")


def test_settings_are_taken_in_both_spellings(run_verb: Any, tmp_path: Path) -> None:
    run_verb("compile", "quickstart", "--out", "a", "--learning_rate", "1e-5", "seed=3")
    text = (tmp_path / "a" / "recipe.yaml").read_text()
    assert "learning_rate: 1e-05" in text and "seed: 3" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quickstart"], "no folder was named"),
        (["--out", "a"], "no recipe was named"),
        (["quickstart", "--out", "a", "--gpus", "none"], "'none' is no number of cards"),
        (["quickstart", "--out", "a", "--to", "trainr"], "--to trainer"),
        (["quickstart", "--out", "a", "--backend", "zreo3"], "zero3"),
        (["quickstart", "--out", "a", "--gpus", "2", "--backend", "single_gpu"], "single_gpu runs 1 process"),
        (["quickstart", "--out", "a", "--gpus", "3"], "30 and 33"),
        (["quickstart", "--out", "a", "--forc"], "did you mean --force"),
    ],
)
def test_mistakes_are_2_and_write_nothing(run_verb: Any, tmp_path: Path, words: list[str], said: str) -> None:
    code, out, err = run_verb("compile", *words)
    assert (code, out) == (2, "")
    assert said in err and "right:" in err
    assert not (tmp_path / "a").exists()


def test_other_files_there_are_kept_unless_forced(run_verb: Any, tmp_path: Path) -> None:
    run_verb("compile", "quickstart", "--out", "a")
    assert run_verb("compile", "quickstart", "--out", "a")[1].startswith("unchanged a/recipe.yaml")
    code, _, err = run_verb("compile", "quickstart", "--out", "a", "seed=5")
    assert code == 2 and "recipe.yaml" in err
    assert run_verb("compile", "quickstart", "--out", "a", "seed=5", "--force")[0] == 0


def test_no_heavy_library_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from launcher.cli.main import main; "
        f"main(['compile', 'quickstart', '--backend', 'zero3', '--gpus', '2', '--out', {str(tmp_path)!r}]); "
        "print(sorted({'torch', 'accelerate', 'deepspeed', 'transformers', 'peft'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
