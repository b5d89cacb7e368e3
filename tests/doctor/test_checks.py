"""Each check on machines that are not here: by what nvidia-smi and torch would say of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.doctor.check import CHECKS, Finding
from launcher.doctor.driver import Card, Driver
from launcher.doctor.examine import Examined, examine, is_good, lines
from launcher.doctor.patient import Patient
from launcher.doctor.probes import Probes
from launcher.hardware.platform_facts import find_platform
from launcher.recipe.load import load_recipe
from tests import instance
from tests.doctor.test_driver import BRIDGED_3090, TWO_4090

MIB = 2**20
CU124 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
OK = {"products": {"cuda:0 float32": "ok", "cuda:0 float16": "ok", "cuda:0 bfloat16": "ok"}}


def card(name: str, mib: int, capability: tuple[int, int], index: int = 0) -> Card:
    return Card(index=str(index), name=f"NVIDIA {name}", memory_bytes=mib * MIB, capability=capability)


RTX_5090 = card("GeForce RTX 5090", 32607, (12, 0))
RTX_4090 = card("GeForce RTX 4090", 24564, (8, 9))
RTX_3090 = card("GeForce RTX 3090", 24576, (8, 6))
V100 = card("Tesla V100-SXM2-32GB", 32768, (7, 0))


def torch(
    version: str = "2.6.0+cu124", cuda: str | None = "12.4", archs: list[str] = CU124
) -> dict[str, Any]:
    return {"version": version, "cuda": cuda, "arch_list": archs, "cpu_has_bf16": True}


def patient(*cards: Card, recipe: str = "", words: tuple[str, ...] = (), **changes: Any) -> Patient:
    probes = {
        "torch": torch(),
        "matmul": OK,
        "bitsandbytes": {"absent": True},
        "flash_attention": {"absent": True},
    }
    probes |= changes.pop("probes", {})
    driver = Driver(version="550.54.15", cuda="12.4", cards=cards) if cards else Driver()
    given: dict[str, Any] = {
        "environ": {},
        "driver": driver,
        "visible": tuple(each.index for each in cards),
        "probes": Probes(given=probes),
        "loaded": load_recipe(recipe, words) if recipe else None,
        "typed": recipe or "RECIPE",
    }
    return Patient(**(given | changes))


def findings(name: str, who: Patient) -> list[Finding]:
    return list(CHECKS.get(name).examine(who))


def statuses(name: str, who: Patient) -> list[str]:
    return [finding.status for finding in findings(name, who)]


def test_b065_a_new_card_with_an_old_build_golden() -> None:
    found = findings("torch_build", patient(RTX_5090))
    assert list(lines(Examined(check="torch build", findings=tuple(found)))) == [
        "good  torch build        torch 2.6.0+cu124 for CUDA 12.4",
        "bad   torch build        torch 2.6.0+cu124 has no kernels for NVIDIA GeForce RTX 5090 (sm_120); it "
        "has sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
        "                         needed: a build with sm_120: its kernels came with CUDA 12.8 and torch 2.7",
        "                         type:   pip install 'torch>=2.7' --index-url "
        "https://download.pytorch.org/whl/cu128",
    ]


def test_b065_on_an_instance_an_image_is_offered_beside_the_install_line(tmp_path: Path) -> None:
    platform = find_platform(instance.make(tmp_path / "i").environ)
    [_, found] = findings("torch_build", patient(RTX_5090, platform=platform))
    assert found.type.endswith("(or an image of AutoDL with CUDA 12.8)")


def test_b065_an_old_card_with_a_new_build_is_told_its_last_wheel() -> None:
    archs = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
    probes = {"torch": torch("2.11.0+cu128", "12.8", archs)}
    [_, found] = findings("torch_build", patient(V100, probes=probes))
    assert found.status == "bad" and "sm_70" in found.found and "/cu126" in found.type


def test_b065_products_are_proof_where_the_list_fits() -> None:
    assert statuses("torch_build", patient(RTX_4090)) == ["good", "good"]
    broken = {
        "matmul": {"products": {"cuda:0 float32": "ok", "cuda:0 bfloat16": "no kernel image is available"}}
    }
    [_, found] = findings("torch_build", patient(RTX_4090, probes=broken))
    assert found.status == "bad" and "bfloat16: no kernel image" in found.found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"torch": torch("2.13.0+cpu", None, [])}, "a build without CUDA"),
        ({"torch": torch("2.13.0+cu130", "13.0")}, "driver 550.54.15 is too old"),
        ({"torch": {"error": "No module named 'torch'"}}, "torch cannot be used"),
        ({"torch": torch(), "matmul": {"error": "the probe ended with -11: Segmentation fault"}}, "-11"),
    ],
)
def test_a_build_that_cannot_work_is_bad_with_the_install_line(changes: dict[str, Any], said: str) -> None:
    found = [
        each for each in findings("torch_build", patient(RTX_4090, probes=changes)) if each.status == "bad"
    ]
    assert len(found) == 1 and said in found[0].found and found[0].type


def test_a_driver_that_does_not_answer_is_quoted() -> None:
    who = replace(patient(), driver=Driver(fault="Driver/library version mismatch"))
    [found] = findings("driver", who)
    assert found.status == "bad" and "mismatch" in found.found


def test_a_missing_card_is_bad_only_where_the_recipe_needs_one() -> None:
    assert statuses("driver", patient()) == ["note"]
    assert statuses("driver", patient(recipe="quickstart", words=("device=cuda",))) == ["bad"]


def test_too_few_visible_cards_for_the_recipe() -> None:
    who = patient(RTX_4090, recipe="quickstart", words=("gpus=2",), environ={"CUDA_VISIBLE_DEVICES": "0"})
    found = findings("driver", who)[-1]
    assert found.status == "bad" and "unset CUDA_VISIBLE_DEVICES" in found.type


def test_a_card_is_planned_by_its_measured_memory() -> None:
    assert "planned as rtx3090" in findings("driver", patient(RTX_3090))[1].found
    doubled = card("GeForce RTX 3090", 49152, (8, 6))
    assert "planned as vgpu48_350w" in findings("driver", patient(doubled))[1].found
    assert statuses("driver", patient(card("Unheard Of", 1000, (8, 6))))[1] == "note"


def test_bf16_is_decided_by_units_not_by_torchs_word() -> None:
    assert statuses("precision", patient(RTX_3090)) == ["good"]
    assert statuses("precision", patient(V100)) == ["note"]
    assert statuses("precision", patient(V100, recipe="quickstart", words=("precision=bf16",))) == ["bad"]


@pytest.mark.parametrize(
    ("cards", "package", "status"),
    [
        ((V100,), {"version": "2.8"}, "bad"),
        ((), {"version": "2.8"}, "bad"),
        ((RTX_4090,), {"absent": True}, "bad"),
        ((RTX_4090,), {"version": "2.8"}, "good"),
        ((RTX_4090,), {"error": "undefined symbol"}, "bad"),
    ],
)
def test_flash_attention_by_architecture_and_package(
    cards: tuple[Card, ...], package: dict[str, Any], status: str
) -> None:
    words = ("attn_implementation=flash_attention_2",)
    who = patient(*cards, recipe="quickstart", words=words, probes={"flash_attention": package})
    assert statuses("flash_attention", who) == [status]
    assert statuses("flash_attention", patient(V100)) == ["good"]


@pytest.mark.parametrize(
    ("section", "plain", "needed"),
    [
        ({"absent": True}, "note", "bad"),
        ({"error": "ImportError: libcusparse"}, "note", "bad"),
        ({"version": "0.50", "place": "cuda", "mean_error": 0.9}, "note", "bad"),
        ({"version": "0.50", "place": "cuda", "mean_error": 0.072}, "good", "good"),
    ],
)
def test_bitsandbytes_is_bad_only_for_a_recipe_that_needs_it(
    section: dict[str, Any], plain: str, needed: str
) -> None:
    probes = {"bitsandbytes": section}
    assert statuses("bitsandbytes", patient(RTX_4090, probes=probes)) == [plain]
    who = patient(RTX_4090, recipe="lora_7b_3090", words=("load_in_4bit=true", "dtype=auto"), probes=probes)
    assert statuses("bitsandbytes", who) == [needed]


def test_eight_bits_need_turing() -> None:
    probes = {"bitsandbytes": {"version": "0.50", "place": "cuda", "mean_error": 0.07}}
    who = patient(V100, recipe="lora_7b_3090", words=("load_in_8bit=true", "dtype=auto"), probes=probes)
    assert findings("bitsandbytes", who)[-1].needed == "7.5 for 8-bit weights"


def pair(which: Card) -> tuple[Card, Card]:
    return which, replace(which, index="1")


def test_b059_cards_without_peers_and_a_person_who_forces_them() -> None:
    who = patient(*pair(RTX_4090))
    who = replace(who, driver=replace(who.driver, topology=TWO_4090))
    assert [each.status for each in findings("topology", who)] == ["good", "good"]
    assert "NCCL_IB_DISABLE, NCCL_P2P_DISABLE to 1" in findings("topology", who)[-1].found
    forced = replace(who, environ={"NCCL_P2P_DISABLE": "0"})
    assert findings("topology", forced)[-1].status == "bad"


def test_b059_bridged_3090s_keep_their_links() -> None:
    who = patient(*pair(RTX_3090))
    who = replace(who, driver=replace(who.driver, topology=BRIDGED_3090))
    assert [each.status for each in findings("topology", who)] == ["good", "good"]
    held_back = replace(who, environ={"NCCL_P2P_DISABLE": "1"})
    assert "unset NCCL_P2P_DISABLE" in findings("topology", held_back)[-1].type


def test_one_card_has_no_topology() -> None:
    assert findings("topology", patient(RTX_4090)) == []


def test_a_default_accelerate_configuration_is_named_with_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / ".cache/huggingface/accelerate"
    folder.mkdir(parents=True)
    who = patient(environ={"HOME": str(tmp_path)})
    assert statuses("accelerate_config", who) == ["good"]
    (folder / "default_config.yaml").write_text(
        "distributed_type: MULTI_GPU\nnum_processes: 8\nuse_cpu: false\n"
    )
    [found] = findings("accelerate_config", who)
    assert found.status == "note"
    assert "distributed_type: MULTI_GPU, num_processes: 8" in found.found


def test_shared_memory_of_docker_is_bad_where_workers_use_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import os

    block = 4096
    small = os.statvfs_result((block, block, 64 * MIB // block, 0, 60 * MIB // block, 0, 0, 0, 0, 255, 0))
    monkeypatch.setattr("launcher.doctor.checks.shared_memory.os.statvfs", lambda place: small)
    (tmp_path / "dev/shm").mkdir(parents=True)
    assert statuses("shared_memory", patient(root=tmp_path)) == ["note"]
    used = patient(root=tmp_path, recipe="quickstart", words=("dataloader_num_workers=2",))
    assert statuses("shared_memory", used) == ["bad"]


def test_a_lock_of_a_killed_compilation_is_bad_and_mended(tmp_path: Path) -> None:
    lock = tmp_path / "cpu_adam/lock"
    lock.parent.mkdir()
    lock.touch()
    who = patient(environ={"TORCH_EXTENSIONS_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert "bad" in statuses("compiler", who)
    fix = CHECKS.get("compiler").fix
    assert fix is not None
    assert [str(lock) in line for line in fix(who)] == [True]
    assert not lock.exists()
    assert "bad" not in statuses("compiler", who)


def test_offloading_needs_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    who = patient(
        RTX_3090, recipe="quickstart", words=("backend=zero2_offload",), environ={"PATH": str(tmp_path)}
    )
    [found] = findings("compiler", who)
    assert found.status == "bad" and "apt-get install" in found.type


def test_without_cards_an_instance_still_prepares(tmp_path: Path) -> None:
    platform = find_platform(instance.make(tmp_path / "i", num_gpus=0).environ)
    assert statuses("no_gpu", patient(platform=platform)) == ["note"]
    assert statuses("no_gpu", patient(platform=platform, recipe="quickstart")) == ["bad"]
    assert findings("no_gpu", patient(RTX_3090)) == []


def test_folklore_and_mirror_beside_proxy_are_notes() -> None:
    environ = {"NVIDIA_TF32_OVERRIDE": "0", "HF_ENDPOINT": "https://hf-mirror.com", "https_proxy": "http://p"}
    found = findings("folklore", patient(environ=environ))
    assert [each.status for each in found] == ["note", "note"]
    assert "switches TF32 off" in found[0].needed


def test_a_model_that_is_not_here_is_bad_and_told_how_to_fetch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    who = patient(recipe="lora_7b_3090")
    [found] = findings("model", who)
    assert (found.status, found.type) == ("bad", "launcher prepare lora_7b_3090")
    name = who.loaded.recipe.model.model_name_or_path.replace("/", "--") if who.loaded else ""
    snapshot = tmp_path / f"hub/models--{name}/snapshots/abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    assert "without weights" in findings("model", who)[0].found
    (snapshot / "model.safetensors").write_bytes(b"x")
    assert statuses("model", who) == ["good"]
    (tmp_path / f"hub/models--{name}/blobs").mkdir()
    (tmp_path / f"hub/models--{name}/blobs/abc.incomplete").touch()
    assert "cut short" in findings("model", who)[0].found


def test_offline_is_bad_only_where_something_must_still_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    offline = {"HF_HUB_OFFLINE": "1"}
    assert statuses("hub", patient(environ=offline)) == ["good"]
    assert statuses("hub", patient(environ=offline, recipe="quickstart")) == ["good"]
    [found] = findings("hub", patient(environ=offline, recipe="lora_7b_3090"))
    assert found.status == "bad" and found.type.startswith("unset HF_HUB_OFFLINE")


def test_data_that_is_missing_is_bad() -> None:
    assert statuses("data", patient(recipe="quickstart")) == ["good"]
    assert statuses("data", patient(recipe="quickstart", words=("train_file=nosuch.csv",))) == ["bad"]


def test_the_memory_plan_is_for_the_card_that_is_here() -> None:
    fits = findings("memory_plan", patient(RTX_3090, recipe="lora_7b_3090"))
    assert [each.status for each in fits] == ["good"] and "on rtx3090" in fits[0].found
    small = card("GeForce RTX 2080 Ti", 11264, (7, 5))
    found = findings("memory_plan", patient(small, recipe="lora_7b_3090"))[0]
    assert found.status == "bad" and "on rtx2080ti" in found.found and found.type


def test_a_check_that_fails_itself_is_a_finding_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(who: Patient) -> list[Finding]:
        raise ValueError("a machine nobody has seen")

    monkeypatch.setattr(
        CHECKS,
        "_pieces",
        {"a": replace(CHECKS.get("ports"), name="a", examine=broken), "b": CHECKS.get("data")},
    )
    found = list(examine(patient(recipe="quickstart")))
    assert [each.check for each in found] == ["a", "data"]
    assert not is_good(found)


def test_no_secret_of_an_address_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CHECKS, "_pieces", {"folklore": CHECKS.get("folklore")})
    environ = {"HF_ENDPOINT": "https://me:pa55word@mirror.example", "https_proxy": "http://p"}
    [told] = examine(patient(environ=environ))
    assert "pa55word" not in told.findings[0].found and "mirror.example" in told.findings[0].found


@pytest.mark.parametrize("name", CHECKS.names())
def test_every_check_bears_a_bare_machine_and_says_what_to_type_for_each_bad_line(name: str) -> None:
    for who in (patient(), patient(*pair(V100), recipe="quickstart")):
        for finding in findings(name, who):
            assert finding.found
            assert finding.status != "bad" or (finding.needed and finding.type)
