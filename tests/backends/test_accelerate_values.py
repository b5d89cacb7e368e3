"""Values and contradictions in an Accelerate YAML, and files of one tool given where another's belongs."""

from pathlib import Path

import pytest

from launcher.backends.accelerate_file import read_file
from launcher.backends.lint import read_accelerate_file, read_ds_file
from launcher.errors import RecipeError

HEAD = "compute_environment: LOCAL_MACHINE\nnum_machines: 1\nnum_processes: 2\n"


def file_of(tmp_path: Path, text: str, name: str = "mine.yaml") -> Path:
    """A file with that text."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("distributed_type: DeepSpeed\n", "distributed_type: DEEPSPEED"),
        ("distributed_type: MULTI_GPU\ndeepspeed_config:\n  zero_stage: 2\n", "distributed_type: DEEPSPEED"),
        ("mixed_precision: bfloat16\n", "mixed_precision: bf16"),
        ("mixed_precision: fp32\n", "mixed_precision: no"),
        ("fp16: true\n", "mixed_precision: fp16"),
        ("gpu_ids: 0\n", 'gpu_ids: "0"'),
        ('distributed_type: MULTI_GPU\ngpu_ids: "3"\nnum_processes: 1\n', "gpu_ids: all"),
        ('gpu_ids: "3"\n', "num_processes: 1"),
        ("main_process_port: abc\n", "main_process_port: 0"),
        ("compute_environment: AMAZON_SAGEMAKER\n", "compute_environment: LOCAL_MACHINE"),
        ("num_machines: 2\n", "num_machines: 1"),
        ("distributed_type: 'NO'\nnum_processes: 4\n", "distributed_type: MULTI_GPU"),
        ("deepspeed_config:\n  zero_stage: 5\n", "zero_stage: 2"),
        ("deepspeed_config:\n  zero_stage: 2\n  offload_param_device: cpu\n", "offload_param_device: none"),
        (
            "deepspeed_config:\n  zero_stage: 3\n  offload_param_device: nvme\n",
            "deepspeed_config_file: ds_configs/zero3_nvme.json",
        ),
        ("deepspeed_config:\n  zero3_init_flag: 'true'\n", "zero3_init_flag: true"),
        (
            "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: FULL_SHARD\n",
            "fsdp_reshard_after_forward: true",
        ),
        (
            "fsdp_config:\n  fsdp_version: 2\n  fsdp_state_dict_type: FULL\n",
            "fsdp_state_dict_type: FULL_STATE_DICT",
        ),
        ("fsdp_config:\n  fsdp_version: 2\n  fsdp_offload_params: 'no'\n", "fsdp_offload_params: false"),
    ],
)
def test_wrong_values_are_told_with_what_to_type(tmp_path: Path, text: str, typed: str) -> None:
    keys = [line.partition(":")[0] for line in text.splitlines()]
    head = "".join(f"{line}\n" for line in HEAD.splitlines() if line.partition(":")[0] not in keys)
    with pytest.raises(RecipeError) as caught:
        read_accelerate_file(file_of(tmp_path, head + text))
    assert f"type:  {typed}" in str(caught.value)


def test_what_has_no_effect_is_a_warning(tmp_path: Path) -> None:
    text = f"{HEAD}distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n  fsdp_sharding_strategy: 1\n"
    text += "dynamo_config:\n  dynamo_backend: INDUCTOR\n"
    said = "\n".join(read_file(file_of(tmp_path, text)).notices)
    assert "fsdp_sharding_strategy: of FSDP's first version" in said
    assert "dynamo_config: not used here" in said
    unsaid = text.replace("num_processes: 2\n", "")
    assert "num_processes is not said" in "\n".join(read_file(file_of(tmp_path, unsaid)).notices)


def test_empty_blocks_of_other_kinds_are_silent(tmp_path: Path) -> None:
    text = f"{HEAD}distributed_type: MULTI_GPU\nfsdp_config: {{}}\ndeepspeed_config: {{}}\ngpu_ids: all\n"
    assert read_file(file_of(tmp_path, text)).notices == ()


def test_a_file_given_to_the_wrong_option_is_told_its_own(tmp_path: Path) -> None:
    yaml = file_of(tmp_path, f"{HEAD}distributed_type: MULTI_GPU\n")
    with pytest.raises(RecipeError, match="--config_file"):
        read_ds_file(yaml)
    json = file_of(tmp_path, '{"zero_optimization": {"stage": 2}}', "mine.json")
    with pytest.raises(RecipeError, match="--ds"):
        read_accelerate_file(json)
    with pytest.raises(RecipeError, match="launcher check"):
        read_ds_file(file_of(tmp_path, "extends: quickstart\n", "recipe.yaml"))
