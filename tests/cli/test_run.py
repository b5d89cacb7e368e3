"""`launcher run`: every check before anything starts, the command as typed, the run's own exit code."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.cli.main import main

QUICK = ["run", "quickstart"]


@pytest.fixture(autouse=True)
def without_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """No card is visible, whatever machine tests run on."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def dry(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The words of the command that would be started."""
    assert main([*QUICK, *words, "--dry-run"]) == 0
    return shlex.split(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and text of a refusal, which says all three parts and no traceback."""
    code = main([*QUICK, *words])
    said = capsys.readouterr().err
    assert "right:" in said
    assert "type:" in said
    assert "Traceback" not in said
    return code, said


def test_the_recipes_own_backend_is_started_by_its_preferred_starter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = dry(capsys)
    assert any(word.endswith("single_gpu.yaml") for word in words)
    assert words[-2:] == ["--recipe", "quickstart"]


def test_several_cards_choose_ddp_where_no_backend_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = dry(capsys, "--gpus", "2")
    assert any(word.endswith("multi_gpu.yaml") for word in words)
    assert words[words.index("--num_processes") + 1] == "2"


@pytest.mark.parametrize("starter", ["accelerate", "deepspeed", "torchrun"])
def test_zero2_can_be_started_by_each_of_its_starters(
    capsys: pytest.CaptureFixture[str], starter: str
) -> None:
    words = dry(capsys, "--backend", "zero2", "--gpus", "2", "--starter", starter)
    assert any(starter in word or word == "torch.distributed.run" for word in words[:5])


def test_what_is_typed_for_the_recipe_reaches_the_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    words = dry(capsys, "--learning_rate", "1e-5", "max_steps=3", "--name", "n", "--resume", "--output_dir=o")
    assert words[words.index("--name") :] == [
        *("--name", "n", "--output_dir", "o", "--resume", "auto"),
        *("learning_rate=1e-5", "max_steps=3"),
    ]


def test_the_recipe_may_stand_behind_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--gpus", "1", "quickstart", "--dry-run"]) == 0
    assert "--recipe quickstart" in capsys.readouterr().out


def test_b056_runs_draw_their_ports(capsys: pytest.CaptureFixture[str]) -> None:
    ports = set()
    for _ in range(3):  # two may draw the same by chance
        words = dry(capsys, "--gpus", "2")
        ports.add(words[words.index("--main_process_port") + 1])
    assert "29500" not in ports
    assert len(ports) > 1


def test_a_dry_run_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dry(capsys, "--backend", "zero2", "--gpus", "2")
    assert list(tmp_path.iterdir()) == []


def test_a_persons_json_names_the_backend(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    words = dry(capsys, "--ds", "ds_configs/zero2.json", "--gpus", "2")
    assert words[words.index("--ds") + 1].endswith("ds_configs/zero2.json")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--gpus", "3", "global_batch_size=32"], 2, "30 and 33"),
        (["--gpus", "0"], 2, "'0' is no number of cards"),
        (["--gpus", "2", "--backend", "single_gpu"], 2, "single_gpu runs 1 process"),
        (["--gpus", "2", "--backend", "zero2", "--starter", "python"], 2, "python starts one process"),
        (["--backend", "multi_gpu", "--starter", "deepspeed"], 2, "deepspeed does not start multi_gpu"),
        (["--backend", "zreo2"], 2, "zero2"),
        (["--backend", "multi_gpu", "--ds", "ds_configs/zero2.json"], 2, "the file is for zero2"),
        (["--ds", "nosuch.json"], 2, "there is no such file"),
        (["lerning_rate=1"], 2, "learning_rate"),
        (["device=cuda"], 1, "needs a GPU, and none is visible"),
        (["--drry-run"], 2, "did you mean --dry_run"),
        (["--resume", "--new"], 2, "--resume and --new"),
        (["another"], 2, "neither an option"),
    ],
)
def test_every_mistake_is_told_before_anything_starts(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    found, text = refused(capsys, *words)
    assert (found, said in text) == (code, True), text


def test_b061_more_processes_than_gpus_is_refused_with_the_same_batch_on_fewer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    code, said = refused(capsys, "--gpus", "4", "global_batch_size=32")
    assert code == 1
    assert "4 processes, but 2 GPUs here" in said
    assert "the global batch stays 32 rows" in said


def test_b059_several_cards_without_peers_are_started_so_that_nccl_does_not_try(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "nvidia-smi"
    lines = [f"{index}, GPU-{index}, 24564, NVIDIA GeForce RTX 4090" for index in (0, 1)]
    tool.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert "NCCL_P2P_DISABLE=1" in dry(capsys, "--gpus", "2")
    assert "NCCL_P2P_DISABLE=1" not in dry(capsys, "--gpus", "1")
    monkeypatch.setenv("NCCL_P2P_DISABLE", "0")
    assert "NCCL_P2P_DISABLE=1" not in dry(capsys, "--gpus", "2")


def test_no_recipe_is_a_mistake_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run"]) == 2
    assert "launcher run quickstart" in capsys.readouterr().err


def test_help_is_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert "usage: launcher run" in capsys.readouterr().out


def test_checking_and_building_need_no_torch() -> None:
    code = (
        "import sys; from launcher.cli.main import main; main(['run', 'quickstart', '--dry-run']); "
        "print(sorted({'torch', 'accelerate', 'deepspeed', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_the_ranks_exit_code_and_message_come_through(tmp_path: Path, root: Path) -> None:
    """A mistake that only a rank can find: the model's folder is not there."""
    words = [
        "run",
        "quickstart",
        "model.pip_package=null",
        "model_name_or_path=./nosuch",
        f"--output_dir={tmp_path}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "launcher", *words], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 2)
    assert done.stderr.count("nosuch") >= 1
    assert "Traceback" not in done.stderr


def test_a_persons_yaml_is_started_with_the_processes_it_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("distributed_type: FSDP\nnum_processes: 4\nfsdp_config: {fsdp_version: 2}\n")
    words = dry(capsys, "--config_file", str(path))
    assert words[words.index("--config_file") + 1] == str(path)
    assert words[words.index("--num_processes") + 1] == "4"
    assert "--backend" not in words
    words = dry(capsys, "--config_file", str(path), "--gpus", "2")
    assert words[words.index("--num_processes") + 1] == "2"


def test_b003_findings_in_a_persons_files_are_told_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    yaml, ds = tmp_path / "mine.yaml", tmp_path / "zero2.json"
    yaml.write_text("distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {fsdp_offload_param: true}\n")
    ds.write_text('{"zero_optimization": {"stage": 3}, "overlap_comm": true}')
    code, said = refused(capsys, "--config_file", str(yaml))
    assert (code, "did you mean fsdp_offload_params" in said) == (2, True)
    code, said = refused(capsys, "--ds", str(ds))
    assert (code, "belongs under zero_optimization" in said) == (2, True)
    ds.write_text('{"zero_optimization": {"stage": 3}}')
    assert main([*QUICK, "--ds", str(ds), "--dry-run"]) == 0
    assert "named for stage 2, but the stage inside is 3" in capsys.readouterr().err


def test_another_starter_does_not_read_accelerates_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config: {zero_stage: 2}\n")
    code, said = refused(capsys, "--config_file", str(path), "--starter", "torchrun")
    assert (code, "--starter accelerate" in said) == (2, True)


def test_a_disk_that_cannot_be_used_is_told_before_ranks_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--backend", "zero3_nvme", "--gpus", "2", f"nvme_path={tmp_path / 'no' / 'disk'}"]
    code, said = refused(capsys, *words)
    assert (code, "mkdir -p" in said) == (1, True)
