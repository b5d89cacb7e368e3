"""A person's DeepSpeed JSON and Accelerate YAML: every finding at once, with its place and what is right."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.backends.lint import read_accelerate_file, read_ds_file, require_one_checkpointing
from launcher.errors import Conflict, RecipeError


def written(tmp_path: Path, content: Any, name: str = "mine.json") -> Path:
    """The content as an indented file: one key a line."""
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
    return path


def zero(stage: Any = 2, **more: Any) -> dict[str, Any]:
    """A JSON with that stage."""
    return {"zero_optimization": {"stage": stage, **more}}


def findings(path: Path) -> str:
    """The text of the refusal."""
    with pytest.raises(RecipeError) as caught:
        read_ds_file(path)
    return str(caught.value)


def test_b003_a_misplaced_key_is_told_where_it_belongs(tmp_path: Path) -> None:
    content = {"zero_optimization": {"stage": 3}, "stage3_gather_16bit_weights_on_model_save": True}
    path = written(tmp_path, content, "ds_zero2_no_offload.json")
    said = findings(path)
    assert f"{path}:5" in said
    assert "it belongs under zero_optimization" in said


def test_b003_a_name_that_contradicts_the_stage_is_a_warning_and_the_stage_is_stated(tmp_path: Path) -> None:
    path = written(tmp_path, zero(3), "ds_zero2_no_offload.json")
    stated, warning = read_ds_file(path).notices
    assert "ZeRO stage 3" in stated
    assert "named for stage 2, but the stage inside is 3" in warning


def test_a_name_that_agrees_or_says_nothing_is_silent(tmp_path: Path) -> None:
    for name in ("zero2.json", "stage_2.json", "a100.json"):
        assert len(read_ds_file(written(tmp_path, zero(), name)).notices) == 1


def test_every_finding_at_once(tmp_path: Path) -> None:
    content = {"zero_optimisation": {}, "amp": {}, **zero(overlap_com=True), "fp16": {"loss_scael": 0}}
    said = findings(written(tmp_path, content))
    for part in ("zero_optimization?", "amp was removed", "overlap_comm?", "loss_scale?"):
        assert part in said


@pytest.mark.parametrize(
    ("content", "right"),
    [
        ({"stage": 2}, "under zero_optimization"),
        (
            {**zero(), "device": "cpu"},
            "under zero_optimization.offload_param or zero_optimization.offload_optimizer",
        ),
        (zero(gradient_clipping=1.0), "under the top level"),
        ({**zero(), "loss_scale_window": 1}, "under fp16"),
        ({**zero(), "bfloat16": {"enabled": True}}, "bf16"),
        (zero(cpu_offload_x=True), "did you mean"),
        (zero(mics_shard_size=2), "zero_hpz_partition_size"),
        ({**zero(), "curriculum_learning": {}}, "data_efficiency.data_sampling.curriculum_learning"),
        ({**zero(), "fp16": True}, "a block of keys"),
    ],
)
def test_wrong_keys_name_the_right_one(tmp_path: Path, content: dict[str, Any], right: str) -> None:
    assert right in findings(written(tmp_path, content))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"a": 1, "a": 2}', "the key 'a' twice"),
        ("\xff", "is not"),
    ],
)
def test_what_is_no_json_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert said in findings(written(tmp_path, text))


def test_the_line_of_a_syntax_error_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, '{\n "a": 1\n "b": 2\n}')
    assert f"{path}:3" in findings(path)


@pytest.mark.parametrize("stage", [0, 4, "two", True, None])
def test_a_stage_that_divides_nothing_is_refused(tmp_path: Path, stage: Any) -> None:
    assert "1 (states), 2 (and gradients) or 3" in findings(written(tmp_path, zero(stage)))


def test_a_file_without_a_stage_is_refused(tmp_path: Path) -> None:
    assert "the stage is 0" in findings(written(tmp_path, {"fp16": {"enabled": True}}))


@pytest.mark.parametrize(
    ("blocks", "backend"),
    [
        ({}, "zero2"),
        ({"offload_optimizer": {"device": "none"}}, "zero2"),
        ({"offload_optimizer": {"device": "cpu"}}, "zero2_offload"),
        ({"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/x"}}, "zero3_nvme"),
    ],
)
def test_the_backend_is_named_by_stage_and_offload(
    tmp_path: Path, blocks: dict[str, Any], backend: str
) -> None:
    assert read_ds_file(written(tmp_path, zero(**{"stage": 2, **blocks}))).backend == backend


def test_an_unknown_offload_device_is_refused(tmp_path: Path) -> None:
    assert "none, cpu or nvme" in findings(written(tmp_path, zero(offload_optimizer={"device": "disk"})))


def test_the_shipped_yamls_pass(root: Path) -> None:
    for path in (root / "accelerate_configs").iterdir():
        assert read_accelerate_file(path)["num_machines"] == 1


def test_b016_checkpointing_is_asked_for_in_one_place() -> None:
    with pytest.raises(Conflict, match="both on"):
        require_one_checkpointing(file="my.yaml", by_file=True, by_recipe=True)
    for by_file, by_recipe in ((True, False), (False, True)):
        require_one_checkpointing(file="my.yaml", by_file=by_file, by_recipe=by_recipe)


def test_the_shipped_jsons_pass(root: Path) -> None:
    for path in (root / "ds_configs").iterdir():
        assert read_ds_file(path).backend == path.stem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num_proceses: 2\n", "did you mean num_processes"),
        ("fsdp_config:\n  fsdp_offload_param: true\n", "did you mean fsdp_offload_params"),
        ("zero_stage: 2\n", "under deepspeed_config"),
        ("deepspeed_config:\n  deepspeed_config_file: a.json\n  zero_stage: 2\n", "zero_stage stands beside"),
        (
            "mixed_precision: bf16\ndeepspeed_config:\n  deepspeed_config_file: a.json\n",
            "mixed_precision stands beside",
        ),
        ("fsdp_config:\n  fsdp_version: 1\n", "fsdp_version: 2"),
        ("fsdp_config:\n  fsdp_offload_params: true\n", "fsdp_version: 2"),
        ("a: [1\n", "is not YAML"),
        ("- 1\n", "is not a mapping"),
    ],
)
def test_wrong_yamls_are_explained(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        read_accelerate_file(written(tmp_path, text, "mine.yaml"))
