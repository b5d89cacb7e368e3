"""A rented machine's ways become the process's own; a model is not loaded where there is no card."""

from pathlib import Path

import pytest

from launcher.errors import HardwareError
from launcher.plan.write import COMMAND_VARIABLE
from launcher.process.on_platform import require_card, settle_platform
from tests import instance


def test_nothing_changes_on_a_machine_of_no_platform(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin", "LAUNCHER_ROOT": str(tmp_path)}
    before = dict(environ)
    assert settle_platform(environ) == ()
    assert environ == before
    require_card(environ, "auto", "quickstart")


def test_b075_the_children_inherit_what_is_set_once_and_is_told_once(tmp_path: Path) -> None:
    environ = instance.make(tmp_path / "i").environ
    lines = settle_platform(environ)
    assert "HF_HOME" in lines[0] and str(tmp_path / "i/root/autodl-tmp") in lines[0]
    assert Path(environ["TMPDIR"]).is_dir()
    assert settle_platform(environ) == ()
    fresh = instance.make(tmp_path / "j").environ | {COMMAND_VARIABLE: "launcher run x"}
    assert settle_platform(fresh) == ()
    assert "HF_HOME" in fresh


def test_a_dry_run_makes_no_folder(tmp_path: Path) -> None:
    environ = instance.make(tmp_path / "i").environ
    assert settle_platform(environ, dry=True)
    assert not Path(environ["TMPDIR"]).exists()
    settle_platform(environ)  # a process that inherits what the dry one has named
    assert Path(environ["TMPDIR"]).is_dir()


def test_a_data_disk_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    rented = instance.make(tmp_path / "i")
    (rented.data_disk / "cache").write_text("a file where the folder should be")
    with pytest.raises(HardwareError, match="data disk cannot be written to"):
        settle_platform(rented.environ)


def test_models_left_on_the_system_disk_are_told_with_the_line_that_moves_them(tmp_path: Path) -> None:
    rented = instance.make(tmp_path / "i")
    (rented.root / "root/.cache/huggingface/hub/models--a--b").mkdir(parents=True)
    assert any("&& mv " in line for line in settle_platform(rented.environ))


def test_without_cards_a_model_is_refused_with_what_works_here(tmp_path: Path) -> None:
    environ = instance.make(tmp_path / "i", num_gpus=0, memory_bytes=2 * instance.GIB).environ
    with pytest.raises(HardwareError) as refused:
        require_card(environ, "auto", "lora_7b_3090")
    said = str(refused.value)
    assert "2.0 GiB of memory" in said
    assert "launcher plan lora_7b_3090" in said and "launcher prepare lora_7b_3090" in said
    require_card(environ, "cpu", "lora_7b_3090")
    require_card(instance.make(tmp_path / "with").environ, "auto", "lora_7b_3090")
