"""Rented machines are recognised by their marks; their disks and mirror are used where nobody chose."""

import sys
from pathlib import Path

import pytest

from launcher.hardware import folklore
from launcher.hardware.limits import cores, host_memory_bytes
from launcher.hardware.placement import MOVED, left_behind, placement, runs_folder
from launcher.hardware.platform_facts import PLATFORMS, find_platform
from launcher.hardware.way_out import both_ways, way_out
from tests import instance
from tests.instance import GIB, Instance


@pytest.fixture
def rented(tmp_path: Path) -> Instance:
    return instance.make(tmp_path / "instance")


def test_every_platform_says_nothing_of_a_plain_machine(tmp_path: Path) -> None:
    assert PLATFORMS.names() == ["autodl"]
    assert find_platform({"PATH": "/usr/bin"}, tmp_path, "workstation") is None


@pytest.mark.parametrize(
    ("environ", "hostname"), [({"AutoDLContainerUUID": "x"}, "h"), ({}, "autodl-container-0a1b2c-3d4e")]
)
def test_a_variable_or_the_hostname_is_enough_to_recognise_but_not_to_be_sure(
    tmp_path: Path, environ: dict[str, str], hostname: str
) -> None:
    found = find_platform(environ, tmp_path, hostname)
    assert found is not None
    assert (found.name, found.is_sure, found.data_disk, found.shutdown_command) == (
        "AutoDL",
        False,
        None,
        None,
    )


def test_a_shell_without_the_variables_is_recognised_by_two_files(rented: Instance) -> None:
    found = find_platform({}, rented.root, "localhost")
    assert found is not None
    assert found.is_sure
    assert found.evidence == ("file /etc/autodl-motd", "folder /root/autodl-tmp")


@pytest.mark.parametrize("gone", ["etc/autodl-motd", "root/autodl-tmp"])
def test_one_file_alone_is_no_instance(rented: Instance, gone: str) -> None:
    path = rented.root / gone
    path.rmdir() if path.is_dir() else path.unlink()
    assert find_platform({}, rented.root, "localhost") is None


def test_what_may_be_absent_is_none(rented: Instance) -> None:
    (rented.root / "root/autodl-fs").rmdir()
    (rented.root / "etc/network_turbo").unlink()
    found = find_platform(rented.environ)
    assert found is not None
    assert (found.network_disk, found.proxy_script) == (None, None)
    assert (found.data_disk, found.num_gpus) == (rented.data_disk, 1)


def test_b078_memory_and_cores_come_from_the_containers_limits(rented: Instance) -> None:
    memory, number = host_memory_bytes(rented.root), cores(rented.root)
    assert memory.amount == 90 * GIB
    assert "cgroup v2 memory.max" in memory.source
    assert number.amount <= 12


def test_b075_every_cache_of_the_stack_goes_to_the_data_disk(rented: Instance, tmp_path: Path) -> None:
    platform = find_platform(rented.environ)
    assert platform is not None
    found = placement(platform, {}, tmp_path)
    named = "HF_HOME HF_DATASETS_CACHE MODELSCOPE_CACHE TMPDIR TORCH_EXTENSIONS_DIR TRITON_CACHE_DIR"
    assert {*named.split(), "LAUNCHER_CACHE", "LAUNCHER_OUTPUT_DIR"} <= set(found)
    assert set(found) == {each.name for each in MOVED}
    assert all(Path(place).is_relative_to(rented.data_disk) for place in found.values())
    assert f"py{sys.version_info.major}{sys.version_info.minor}" in found["TORCH_EXTENSIONS_DIR"]


@pytest.mark.parametrize("name", [each.name for each in MOVED])
def test_b075_a_variable_that_a_person_has_set_stays_theirs(
    rented: Instance, tmp_path: Path, name: str
) -> None:
    platform = find_platform(rented.environ)
    assert platform is not None
    assert name not in placement(platform, {name: "/mine"}, tmp_path)


def test_what_follows_from_a_persons_variable_follows_it_still(rented: Instance, tmp_path: Path) -> None:
    platform = find_platform(rented.environ)
    assert platform is not None
    assert "HF_DATASETS_CACHE" not in placement(platform, {"HF_HOME": "/mine"}, tmp_path)
    found = placement(platform, {"XDG_CACHE_HOME": "/mine"}, tmp_path)
    assert {"HF_HOME", "TORCH_EXTENSIONS_DIR", "LAUNCHER_CACHE"}.isdisjoint(found)


def test_a_cache_linked_to_the_data_disk_already_is_left_where_it_is(
    rented: Instance, tmp_path: Path
) -> None:
    (rented.data_disk / "mycache").mkdir()
    (rented.root / "root/.cache").symlink_to(rented.data_disk / "mycache")
    platform = find_platform(rented.environ)
    assert platform is not None
    found = placement(platform, {}, rented.data_disk)
    assert {"HF_HOME", "LAUNCHER_CACHE", "LAUNCHER_OUTPUT_DIR"}.isdisjoint(found)
    assert "TMPDIR" in found


def test_runs_are_looked_for_where_they_go(rented: Instance, tmp_path: Path) -> None:
    assert runs_folder(rented.environ, tmp_path) == rented.data_disk / "runs"
    assert runs_folder(rented.environ | {"LAUNCHER_OUTPUT_DIR": "/mine"}, tmp_path) == Path("/mine")
    assert runs_folder({"LAUNCHER_ROOT": str(tmp_path)}, tmp_path) == Path("runs")


def test_a_login_and_models_of_before_are_not_lost(rented: Instance, tmp_path: Path) -> None:
    usual = rented.root / "root/.cache/huggingface"
    (usual / "hub/models--a--b").mkdir(parents=True)
    (usual / "token").write_text("hf_x")
    platform = find_platform(rented.environ)
    assert platform is not None
    found = placement(platform, {}, tmp_path)
    assert found["HF_TOKEN_PATH"] == str(usual / "token")
    assert left_behind(platform, found) == usual / "hub"
    (Path(found["HF_HOME"]) / "hub/models--a--b").mkdir(parents=True)
    assert left_behind(platform, found) is None


def test_the_mirror_is_chosen_where_nobody_chose_and_never_beside_a_proxy(rented: Instance) -> None:
    platform = find_platform(rented.environ)
    assert platform is not None
    assert way_out(platform, {}).variables == {
        "HF_ENDPOINT": "https://hf-mirror.com",
        "HF_HUB_DISABLE_XET": "1",
    }
    assert way_out(platform, {"https_proxy": "http://172.16.0.1:12798"}).variables == {}
    assert way_out(platform, {"HF_ENDPOINT": "https://mine"}).variables == {}
    assert way_out(platform, {"HF_HUB_OFFLINE": "1"}).variables == {}
    assert any("token is sent" in line for line in way_out(platform, {"HF_TOKEN": "hf_x"}).lines)


def test_mirror_and_proxy_together_are_warned_of_with_what_to_unset() -> None:
    said = both_ways({"HF_ENDPOINT": "https://hf-mirror.com", "http_proxy": "p", "https_proxy": "p"})
    assert said is not None
    assert said.endswith("unset http_proxy https_proxy")
    assert both_ways({"HF_ENDPOINT": "https://huggingface.co", "https_proxy": "p"}) is None
    assert both_ways({"HF_ENDPOINT": "http://127.0.0.1:8000", "https_proxy": "p"}) is None


@pytest.mark.parametrize(
    ("given", "truth"),
    [
        ("NVIDIA_TF32_OVERRIDE=0", "switches TF32 off"),
        ("FLASH_ATTENTION=1", "does nothing"),
        ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32", "fragment"),
        ("TOKENIZERS_PARALLELISM=false", "one core"),
        ("TRANSFORMERS_CACHE=/x", "HF_HOME"),
        ("NCCL_SHM_DISABLE=1", "slower"),
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments=True", "a word that it does not know"),
        ("CUDA_VISIBLE_DEVICES=0 1", "commas between"),
        ("CUDA_VISIBLE_DEVICES=0\uff0c1", "commas between"),
        ("CUDA_VISIBLE_DEVICES=cuda:0", "commas between"),
        ("CUDA_VISIBLE_DEVICES=0,0", "each once"),
        ("OMP_NUM_THREADS=0", "takes all cores"),
        ("HF_ENDPOINT=hf-mirror.com", "without https://"),
        ("https_proxy=127.0.0.1:7890", "without http://"),
        ("HF_HUB_ENABLE_HF_TRANSFER=1", "not used any more"),
        ("WANDB_DISABLED=true", "Trainer reads it"),
        ("NCCL_BLOCKING_WAIT=1", "TORCH_NCCL_BLOCKING_WAIT"),
        ("WORLD_SIZE=2", "waits for other ranks"),
        ("MASTER_PORT=auto", "no port's number"),
        ("ACCELERATE_MIXED_PRECISION=fp16", "takes itself for accelerate's"),
    ],
)
def test_folklore_is_corrected(given: str, truth: str) -> None:
    name, _, value = given.partition("=")
    [(said, belief)] = folklore.mistaken({name: value})
    assert said == given
    assert truth in belief.truth
    assert belief.instead


@pytest.mark.parametrize(
    "given",
    [
        "NVIDIA_TF32_OVERRIDE=1",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2]",
        "CUDA_LAUNCH_BLOCKING=0",
        "CUDA_VISIBLE_DEVICES=0,1",
        "CUDA_VISIBLE_DEVICES=GPU-5f0e9c2a-1b2c-3d4e-5f60-718293a4b5c6",
        "CUDA_VISIBLE_DEVICES=-1",
        "OMP_NUM_THREADS=8",
        "HF_ENDPOINT=https://hf-mirror.com",
        "https_proxy=http://127.0.0.1:7890",
        "MASTER_PORT=29501",
    ],
)
def test_a_variable_that_does_what_it_is_set_for_is_no_folklore(given: str) -> None:
    name, _, value = given.partition("=")
    assert list(folklore.mistaken({name: value})) == []
