"""`launcher import`: the recipe on standard output or in a file, the list on standard error."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
ARGUMENTS = '{"learning_rate": 1e-5, "adam_beta1": 0.9, "label_smoothing_factor": 0.1, "num_train_epochs": 1}'


@pytest.fixture
def args_json(tmp_path: Path) -> str:
    (tmp_path / "args.json").write_text(ARGUMENTS, encoding="utf-8")
    return "args.json"


def test_the_recipe_is_the_result_and_the_list_is_not(run_verb: Run, args_json: str) -> None:
    code, out, err = run_verb("import", args_json)
    assert code == 0
    assert "learning_rate: 1e-05" in out
    assert "not carried over: 1" in err
    assert "args.json:1  label_smoothing_factor: 0.1" in err
    assert "yours to say: model.model_name_or_path" in err
    assert "# not carried over:" in out


def test_a_written_recipe_is_checked_up_to_its_files(run_verb: Run, args_json: str) -> None:
    words = ("model_name_or_path=a/b", "train_file=none.csv", "task=classification")
    code, out, err = run_verb("import", args_json, "--out", "mine.yaml", *words)
    assert (code, out) == (0, "")
    assert "yours to say" not in err
    code, out, err = run_verb("check", "mine.yaml")
    assert code == 1
    assert "there is no file 'none.csv'" in err


def test_nothing_is_written_over(run_verb: Run, args_json: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine", encoding="utf-8")
    code, _, err = run_verb("import", args_json, "--out", "mine.yaml")
    assert code == 2
    assert "the file is there already" in err
    assert (tmp_path / "mine.yaml").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_is_not_there_is_told(run_verb: Run, args_json: str) -> None:
    code, _, err = run_verb("import", args_json, "--out", "no/such/folder/mine.yaml")
    assert code == 2
    assert "cannot be written" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.json",), "no such file"),
        ((".",), "this is a folder"),
        (("args.json", "--from", "trainr"), "unknown dialect 'trainr'"),
        (("args.json", "--gpus", "0"), "too few"),
        (("args.json", "nonsense"), "is no setting"),
        (("args.json", "learning_rate=fast"), "command line  training.learning_rate: 'fast' cannot be used"),
        (("args.json", "gpus=many"), "hardware.gpus: 'many' cannot be used"),
        (("args.json", "no_such_key=1"), "unknown key 'no_such_key'"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], said: str, run_verb: Run, args_json: str) -> None:
    code, out, err = run_verb("import", *words)
    assert code == 2
    assert out == ""
    assert said in err
    assert "type:" in err


def test_the_tool_can_be_named(run_verb: Run, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("learning_rate: 1e-5\nseed: 1\n", encoding="utf-8")
    code, _, err = run_verb("import", "job.yaml", "--from", "llama-factory")
    assert code == 0
    assert "LLaMA-Factory" in err


def test_programs_get_json(run_verb: Run, args_json: str) -> None:
    code, out, _ = run_verb("import", args_json, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["dialect"] == "trainer"
    assert found["values"]["training.learning_rate"] == 1e-5
    assert [each["theirs"] for each in found["left"]] == ["label_smoothing_factor"]


def test_no_heavy_library_is_loaded(
    fresh: Callable[..., "subprocess.CompletedProcess[str]"], root: Path
) -> None:
    sample = root / "tests/recipe/importing/samples/axolotl/qlora.yml"
    code = (
        "import sys; from launcher.cli.main import main; main(sys.argv[1:]);"
        "print(sorted({'torch', 'transformers', 'accelerate', 'deepspeed', 'peft'} & set(sys.modules)))"
    )
    done = fresh("-c", code, "import", str(sample))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_verb_has_the_reserved_name() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "launcher", "--help"], capture_output=True, text=True, check=False
    )
    assert "  import " in done.stdout
    assert "import_" not in done.stdout
