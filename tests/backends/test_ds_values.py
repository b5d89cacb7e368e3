"""Values and contradictions in a DeepSpeed JSON: each is told with what to type, before any rank starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.backends.lint import read_ds_file
from launcher.errors import RecipeError


def read(tmp_path: Path, stage: Any = 2, top: dict[str, Any] | None = None, **zero: Any) -> Any:
    """The file with that content, read."""
    path = tmp_path / "mine.json"
    content = {**(top or {}), "zero_optimization": {"stage": stage, **zero}}
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return read_ds_file(path)


def refusal(tmp_path: Path, *args: Any, **zero: Any) -> str:
    """The text of the refusal."""
    with pytest.raises(RecipeError) as caught:
        read(tmp_path, *args, **zero)
    return str(caught.value)


@pytest.mark.parametrize(
    ("top", "typed"),
    [
        ({"train_batch_size": 0}, '"train_batch_size": "auto"'),
        ({"train_micro_batch_size_per_gpu": 2.5}, '"train_micro_batch_size_per_gpu": "auto"'),
        ({"gradient_clipping": -1}, '"gradient_clipping": 1.0'),
        ({"fp16": {"enabled": True, "loss_scale": "auto"}}, '"loss_scale": 1.0'),
        ({"communication_data_type": "bfloat16"}, '"communication_data_type": "bf16"'),
        ({"train_batch_size": "many"}, '"train_batch_size": "auto"'),
        ({"bf16": {"enabled": "yes"}}, '"enabled": true'),
        ({"wall_clock_breakdown": "no"}, '"wall_clock_breakdown": false'),
        ({"bf16": True}, '"bf16": {"enabled": true}'),
        ({"optimizer": {"type": "AdamW", "params": {"learning_rate": 1e-5}}}, "type:  lr"),
        ({"aio": {"queue_size": 8}}, "type:  queue_depth"),
        ({"tensorboard": {"output_dir": "x"}}, "type:  output_path"),
        ({"deepspeed_config": {"zero_optimization": {}}}, "remove deepspeed_config and its braces"),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_with_the_right_one(
    tmp_path: Path, top: dict[str, Any], typed: str
) -> None:
    assert typed in refusal(tmp_path, 2, top)


def test_numbers_and_switches_in_quotes_are_read_as_what_they_say(tmp_path: Path) -> None:
    top = {"train_batch_size": "32", "gradient_clipping": "0.5", "bf16": {"enabled": "False"}}
    found = read(tmp_path, "2", top, reduce_bucket_size="5e8", overlap_comm="true")
    zero = {"stage": 2, "reduce_bucket_size": 500_000_000, "overlap_comm": True}
    assert found.config == {
        "train_batch_size": 32,
        "gradient_clipping": 0.5,
        "bf16": {"enabled": False},
        "zero_optimization": zero,
    }
    said = "\n".join(found.notices)
    assert "train_batch_size stands in quotes: read as 32" in said
    assert "bf16.enabled stands in quotes: read as false" in said


def test_words_where_numbers_are_wanted_are_refused_and_auto_is_not(tmp_path: Path) -> None:
    assert '"reduce_bucket_size": "auto"' in refusal(tmp_path, reduce_bucket_size="large")
    assert '"overlap_comm": false' in refusal(tmp_path, overlap_comm="no")
    read(tmp_path, reduce_bucket_size="auto", overlap_comm="auto", allgather_bucket_size=2e8)


@pytest.mark.parametrize(
    ("stage", "zero", "said"),
    [
        (2, {"offload_param": {"device": "cpu"}}, "offload_param needs stage 3"),
        (2, {"offload_optimizer": {"device": "nvme", "nvme_path": "/x"}}, "a disk (nvme) is for stage 3"),
        (3, {"offload_optimizer": {"device": "nvme"}}, "no nvme_path"),
        (2, {"cpu_offload": True}, "called offload_optimizer now"),
        (3, {"stage3_gather_fp16_weights_on_model_save": True}, "stage3_gather_16bit_weights_on_model_save"),
    ],
)
def test_offload_that_its_stage_does_not_have_is_refused(
    tmp_path: Path, stage: int, zero: dict[str, Any], said: str
) -> None:
    assert said in refusal(tmp_path, stage, None, **zero)


def test_both_precisions_at_once_are_refused(tmp_path: Path) -> None:
    on = {"enabled": True}
    assert "fp16 and bf16 are both enabled" in refusal(tmp_path, 2, {"fp16": on, "bf16": on})
    read(tmp_path, 2, {"fp16": {"enabled": False}, "bf16": on})


def test_b001_a_batch_that_no_number_of_cards_makes_is_refused(tmp_path: Path) -> None:
    figures = {
        "train_batch_size": 50,
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 8,
    }
    assert "no multiple of 4 x 8" in refusal(tmp_path, 2, figures)
    read(tmp_path, 2, {**figures, "train_batch_size": 64})


def test_keys_of_stage_3_beside_another_stage_are_a_warning(tmp_path: Path) -> None:
    said = "\n".join(read(tmp_path, 2, None, stage3_max_live_parameters=1).notices)
    assert "stage3_max_live_parameters: without effect, the stage is 2" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n // two\n "zero_optimization": {"stage": 2}}', "a comment"),
        ('{"zero_optimization": {"stage": 2},\n}', "a comma before the closing bracket"),
        ("{'zero_optimization': {}}", "single quotes"),
        ('{"bf16": {"enabled": True}}', "a word of Python"),
        ('{"bf16": {"enabled": true}', "the text ends too early"),
        ('{"a": 1\n "b": 2}', "no comma before this"),
    ],
)
def test_slips_that_keep_a_text_from_being_json_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match=said):
        read_ds_file(path)


def test_a_name_that_speaks_of_offload_is_held_against_the_content(tmp_path: Path) -> None:
    def said(name: str, **zero: Any) -> str:
        path = tmp_path / name
        path.write_text(json.dumps({"zero_optimization": {"stage": 2, **zero}}))
        return "\n".join(read_ds_file(path).notices)

    assert "named for offload, but nothing" in said("zero2_offload.json")
    leaves = {"offload_optimizer": {"device": "cpu"}}
    assert "named for no offload, but zero2_offload" in said("ds_zero2_no_offload.json", **leaves)
    assert "warning" not in said("zero2-offload.json", **leaves)
    assert "warning" not in said("ds_zero2_no_offload.json")
