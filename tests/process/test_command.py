"""The starter's command line: what each starter gets, and that a person could type it."""

import shlex
import shutil
import sys
from pathlib import Path

import pytest

from launcher.backends.options import BACKENDS
from launcher.errors import BadValue
from launcher.process.command import Chosen, Command, Start, choose_starter, starter_command

WORDS = ["--recipe", "quickstart"]


def command(
    backend: str, starter: str, num_processes: int = 2, cards: tuple[str, ...] = (), **chosen: object
) -> Command:
    """That backend started so."""
    start = Start(num_processes=num_processes, port=4711, num_threads=3, cards=cards)
    wanted = Chosen(backend=BACKENDS.get(backend), **chosen)  # type: ignore[arg-type]
    return starter_command(wanted, starter=starter, start=start, words=WORDS)


def after(argv: tuple[str, ...], option: str) -> str:
    """The word behind the option."""
    return argv[argv.index(option) + 1]


@pytest.mark.parametrize("backend", ["multi_gpu", "zero2"])
def test_b056_every_starter_of_several_gets_the_port_and_the_count(backend: str, root: Path) -> None:
    argv = command(backend, "accelerate").argv
    assert (after(argv, "--num_processes"), after(argv, "--main_process_port")) == ("2", "4711")
    assert after(argv, "--config_file") == str(root / f"accelerate_configs/{backend}.yaml")
    argv = command(backend, "torchrun").argv
    assert (after(argv, "--nproc_per_node"), after(argv, "--master_port")) == ("2", "4711")


def test_the_words_stand_behind_the_script_on_every_starter(root: Path) -> None:
    for starter in ("accelerate", "torchrun", "deepspeed", "python"):
        argv = command("zero2", starter).argv
        script = argv.index(str(root / "launcher/run.py"))
        assert list(argv[-2:]) == WORDS
        assert script < len(argv) - 2


def test_b056_deepspeed_gets_the_visible_cards_by_id_since_num_gpus_would_overrule_them() -> None:
    argv = command("zero2", "deepspeed", cards=("1", "3", "5")).argv
    assert after(argv, "--include") == "localhost:1,3"
    assert "--num_gpus" not in argv


def test_deepspeed_without_cards_gets_a_count(root: Path) -> None:
    argv = command("zero2", "deepspeed").argv
    assert (after(argv, "--num_gpus"), after(argv, "--master_port")) == ("2", "4711")
    assert after(argv, "--ds") == str(root / "ds_configs/zero2.json")


@pytest.mark.parametrize(
    ("backend", "starter", "num_processes", "says_backend"),
    [
        ("single_gpu", "accelerate", 1, False),
        ("multi_gpu", "accelerate", 2, False),
        ("multi_gpu", "accelerate", 1, True),
        ("zero2", "accelerate", 1, False),
        ("zero2", "torchrun", 2, True),
        ("zero2", "python", 1, True),
        ("single_gpu", "python", 1, True),
    ],
)
def test_the_backend_is_said_only_where_the_starter_leaves_it_open(
    backend: str, starter: str, num_processes: int, says_backend: bool
) -> None:
    assert ("--backend" in command(backend, starter, num_processes).argv) is says_backend


def test_options_that_the_shipped_json_lacks_are_left_to_the_ranks(root: Path) -> None:
    """Accelerate's own YAML would name the shipped JSON, which would win over the recipe's options."""
    argv = command("zero2", "accelerate", has_own_options=True).argv
    assert after(argv, "--config_file") == str(root / "accelerate_configs/multi_gpu.yaml")
    assert after(argv, "--backend") == "zero2"


def test_a_persons_own_json_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.touch()
    for starter in ("accelerate", "torchrun", "deepspeed", "python"):
        assert after(command("zero2", starter, ds=str(path)).argv, "--ds") == str(path)


def test_the_yaml_in_use_comes_back_for_the_run_folder(root: Path) -> None:
    kept = command("zero2", "accelerate").files["accelerate.yaml"]
    assert kept == (root / "accelerate_configs/zero2.yaml").read_text()
    assert command("zero2", "deepspeed").files == {}


def test_typed_is_the_same_command_for_a_shell(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(root)
    made = command("zero2", "accelerate")
    assignment, *words = shlex.split(made.typed())
    assert assignment == "OMP_NUM_THREADS=3"
    assert len(words) == len(made.argv)
    assert words[1:3] == ["launch", "--config_file"]
    assert "launcher/run.py" in words
    assert all((shutil.which(word) or str(root / word)) for word in words)


def test_typed_names_a_program_only_where_the_shell_would_find_the_same(
    monkeypatch: pytest.MonkeyPatch, root: Path, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    assert str(Path(sys.executable).parent / "accelerate") in command("multi_gpu", "accelerate").typed()
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert " accelerate launch " in command("multi_gpu", "accelerate").typed()


def test_a_starter_that_cannot_start_the_backend_is_refused() -> None:
    with pytest.raises(BadValue, match="deepspeed does not start multi_gpu"):
        choose_starter(BACKENDS.get("multi_gpu"), "deepspeed")
    assert choose_starter(BACKENDS.get("zero2"), None) == BACKENDS.get("zero2").starters[0]


def test_b059_what_the_cards_need_reaches_every_starter() -> None:
    variables = {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}
    for starter in ("accelerate", "torchrun", "deepspeed"):
        start = Start(num_processes=2, port=4711, num_threads=3, cards=("0", "1"), variables=variables)
        made = starter_command(
            Chosen(backend=BACKENDS.get("zero2")), starter=starter, start=start, words=WORDS
        )
        assert variables.items() <= made.environment.items()
        assert "NCCL_P2P_DISABLE=1" in made.typed()
