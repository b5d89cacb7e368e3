"""A person's files against a recipe: one table of contradictions, before anything starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import Conflict, RecipeError
from launcher.facts import RunArguments
from launcher.process.own_files import OwnFiles, agree, read_own_files

ZERO3 = "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n"


def written(tmp_path: Path, name: str, content: Any) -> str:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def quickstart(*overrides: str) -> RunArguments:
    return RunArguments(recipe="quickstart", overrides=overrides)


def test_nothing_named_is_nothing() -> None:
    assert read_own_files(None, None) == OwnFiles()


def test_findings_of_both_files_come_at_once(tmp_path: Path) -> None:
    yaml = written(tmp_path, "a.yaml", ZERO3 + "  zero_stag: 3\n")
    ds = written(tmp_path, "b.json", {"stage": 3})
    with pytest.raises(RecipeError) as caught:
        read_own_files(ds, yaml)
    said = str(caught.value)
    assert "did you mean zero_stage?" in said and "under zero_optimization" in said


def test_the_json_inside_the_yaml_decides(tmp_path: Path) -> None:
    ds = written(tmp_path, "zero2.json", {"zero_optimization": {"stage": 3}})
    files = read_own_files(None, written(tmp_path, "a.yaml", ZERO3 + f"  deepspeed_config_file: {ds}\n"))
    assert (files.backend, files.num_processes) == ("zero3", 2)
    assert any("named for stage 2" in notice for notice in files.notices)


def test_two_files_for_two_backends_are_refused(tmp_path: Path) -> None:
    ds = written(tmp_path, "b.json", {"zero_optimization": {"stage": 2}})
    with pytest.raises(Conflict, match="is for zero3, .*b.json for zero2"):
        read_own_files(ds, written(tmp_path, "a.yaml", ZERO3 + "  zero_stage: 3\n"))


def test_offload_that_a_stage_does_not_have_is_refused_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"a.yaml:\d+  offload_param_device: nvme, and stage 1"):
        read_own_files(
            None, written(tmp_path, "a.yaml", ZERO3 + "  zero_stage: 1\n  offload_param_device: nvme\n")
        )


def test_b001_figures_that_do_not_multiply_are_told_before_ranks_start(tmp_path: Path) -> None:
    content = {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": "4",
        "gradient_accumulation_steps": 8,
        "zero_optimization": {"stage": 2},
    }
    files = read_own_files(written(tmp_path, "b.json", content), None)
    with pytest.raises(Conflict, match="train_batch_size 64 != 4 x 8 x 1"):
        agree(quickstart("global_batch_size=64"), files, 1)
    agree(quickstart("global_batch_size=64"), files, 2)


def test_contradictions_with_the_yaml_are_one_table(tmp_path: Path) -> None:
    text = "mixed_precision: bf16\n" + ZERO3 + "  zero_stage: 2\n  gradient_clipping: 0.5\n"
    files = read_own_files(None, written(tmp_path, "a.yaml", text))
    with pytest.raises(Conflict) as caught:
        agree(quickstart("precision=fp32", "max_grad_norm=1.0"), files, 2)
    said = str(caught.value)
    assert "training.max_grad_norm | -      | 0.5  | 1.0" in said
    assert "training.precision     | -      | bf16 | fp32" in said


def test_what_only_the_files_say_is_taken_over(tmp_path: Path) -> None:
    content = {"gradient_clipping": 0.25, "zero_optimization": {"stage": 3, "reduce_bucket_size": 7}}
    files = read_own_files(written(tmp_path, "b.json", content), None)
    recipe = agree(quickstart(), files, 2).loaded.recipe
    assert recipe.training.max_grad_norm == 0.25
    assert recipe.backend.model_dump()["reduce_bucket_size"] == 7


def test_the_backends_own_options_are_compared_too(tmp_path: Path) -> None:
    content = {"zero_optimization": {"stage": 3, "reduce_bucket_size": 7}}
    files = read_own_files(written(tmp_path, "b.json", content), None)
    with pytest.raises(Conflict, match=r"backend.reduce_bucket_size \| -      \| 7    \| 8"):
        agree(quickstart("backend.reduce_bucket_size=8"), files, 2)
    agree(quickstart("backend.reduce_bucket_size=7"), files, 2)


def test_options_of_a_shipped_json_can_be_set(root: Path) -> None:
    files = read_own_files("ds_configs/zero3_nvme.json", None)
    started = agree(quickstart("backend.nvme_path=/disk", "backend.reduce_bucket_size=8"), files, 2)
    assert started.ds_config is not None
    zero = started.ds_config["zero_optimization"]
    assert zero["reduce_bucket_size"] == 8
    assert {zero[block]["nvme_path"] for block in ("offload_param", "offload_optimizer")} == {"/disk"}
