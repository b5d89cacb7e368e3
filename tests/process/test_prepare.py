"""What a rank settles before torch: B061 too few cards, B062 one process among many, B056 the port."""

import os
import socket
import sys
from pathlib import Path

import pytest

from launcher.errors import HardwareError
from launcher.facts import RunArguments, Starter
from launcher.process.prepare import prepare, put_bin_first, require_cards
from launcher.recipe.load import load_recipe


def environ(tmp_path: Path, **variables: str) -> dict[str, str]:
    """An environment with no locks to clear, and those variables."""
    return {"PATH": "/usr/bin", "TORCH_EXTENSIONS_DIR": str(tmp_path), **variables}


def arguments(*overrides: str) -> RunArguments:
    """The quickstart with those overrides."""
    return RunArguments(recipe="quickstart", overrides=overrides)


def ranks(count: int, name: str = "torchrun", rank: int = 0) -> Starter:
    """That many on this machine."""
    return Starter(name=name, rank=rank, world_size=count, local_world_size=count, backend="multi_gpu")


def test_b062_bare_python_among_eight_gpus_is_pinned_to_one_and_says_so(tmp_path: Path) -> None:
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES="0,1,2,3,4,5,6,7")
    (line,) = prepare(arguments(), Starter(name="python"), variables)
    assert variables["CUDA_VISIBLE_DEVICES"] == "0"
    assert line.startswith("1 of 8 GPUs used")
    assert "launcher run quickstart --gpus 8" in line


def test_b062_the_first_visible_card_is_the_one(tmp_path: Path) -> None:
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES="5,2")
    prepare(arguments(), Starter(name="accelerate", backend="single_gpu"), variables)
    assert variables["CUDA_VISIBLE_DEVICES"] == "5"


@pytest.mark.parametrize("cards", ["", "3"])
def test_no_card_or_one_is_left_as_it_is(tmp_path: Path, cards: str) -> None:
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES=cards)
    assert prepare(arguments(), Starter(name="python"), variables) == ()
    assert variables["CUDA_VISIBLE_DEVICES"] == cards


def test_b061_more_processes_than_gpus_names_the_same_batch_on_fewer(tmp_path: Path) -> None:
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES="0,1")
    with pytest.raises(HardwareError) as caught:
        prepare(arguments("global_batch_size=32", "per_device_train_batch_size=4"), ranks(4), variables)
    said = str(caught.value)
    assert "4 processes, but 2 GPUs here" in said
    assert "stays 32 = 4 rows x 4 accumulation x 2 GPUs" in said
    assert "launcher run quickstart --gpus 2" in said
    assert "--num_processes 2" in said


def test_b061_a_batch_that_does_not_divide_names_the_nearest() -> None:
    with pytest.raises(HardwareError, match="30 or 33 would"):
        require_cards(load_recipe("quickstart", ["global_batch_size=32"]), 4, 3)


@pytest.mark.parametrize("num_gpus", [0, 4, 8])
def test_b061_enough_cards_or_none_at_all_is_fine(num_gpus: int) -> None:
    require_cards(load_recipe("quickstart"), 4, num_gpus)


def test_a_cpu_recipe_may_start_more_processes_than_there_are_cards(tmp_path: Path) -> None:
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES="0")
    assert prepare(arguments("device=cpu"), ranks(2), variables) == ()


def test_b056_a_held_rendezvous_port_names_its_holder_and_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        variables = environ(tmp_path, MASTER_PORT=str(port), MASTER_ADDR="127.0.0.1", CUDA_VISIBLE_DEVICES="")
        with pytest.raises(HardwareError, match=f"held by PID {os.getpid()}") as caught:
            prepare(arguments(), ranks(2, "deepspeed"), variables)
        assert "deepspeed --master_port" in str(caught.value)
        assert prepare(arguments(), ranks(2, "deepspeed", rank=1), variables) == ()


def test_this_pythons_folder_comes_first_on_path_and_once() -> None:
    folder = str(Path(sys.executable).parent)
    variables = {"PATH": f"/usr/bin:{folder}"}
    put_bin_first(variables)
    assert variables["PATH"] == f"{folder}:/usr/bin"


def test_no_recipe_is_said_first(tmp_path: Path) -> None:
    typed = RunArguments(recipe="quickstart", recipe_was_given=False)
    lines = prepare(typed, Starter(name="python"), environ(tmp_path, CUDA_VISIBLE_DEVICES=""))
    assert lines == ("no --recipe given: running 'quickstart'",)


def test_a_jsons_stage_is_said(tmp_path: Path, root: Path) -> None:
    starter = Starter(name="python", config_file=str(root / "ds_configs/zero2.json"), backend="zero2")
    (line,) = prepare(arguments(), starter, environ(tmp_path, CUDA_VISIBLE_DEVICES=""))
    assert "ZeRO stage 2, backend zero2" in line


def test_a_stale_lock_is_cleared_by_the_first_rank_of_the_machine(tmp_path: Path) -> None:
    lock = tmp_path / "deepspeed_shm_comm" / "lock"
    lock.parent.mkdir()
    lock.touch()
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES="")
    second = Starter(
        name="torchrun", rank=1, local_rank=1, world_size=2, local_world_size=2, backend="multi_gpu"
    )
    assert prepare(arguments(), second, variables) == ()
    assert lock.exists()
    assert len(prepare(arguments(), ranks(2), variables)) == 1
    assert not lock.exists()


def test_every_rank_of_an_fsdp_start_reads_the_whole_model(tmp_path: Path) -> None:
    """Where accelerate's YAML is silent it exports true, and transformers then loads one rank alone."""
    variables = environ(tmp_path, FSDP_CPU_RAM_EFFICIENT_LOADING="true", ACCELERATE_USE_FSDP="true")
    starter = Starter(name="accelerate", world_size=2, local_world_size=2, backend="fsdp2")
    prepare(arguments("device=cpu"), starter, variables)
    assert "FSDP_CPU_RAM_EFFICIENT_LOADING" not in variables


def test_b059_ranks_of_any_starter_get_what_their_cards_need(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, GPU-a, 32607, NVIDIA GeForce RTX 5090'\n")
    tool.chmod(0o755)
    variables = environ(tmp_path, CUDA_VISIBLE_DEVICES="0,1") | {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    prepare(arguments(), ranks(2), variables)
    assert (variables["NCCL_P2P_DISABLE"], variables["NCCL_IB_DISABLE"]) == ("1", "1")
