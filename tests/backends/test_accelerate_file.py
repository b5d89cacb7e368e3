"""A person's Accelerate YAML: which backend it stands for, and which of the recipe's facts it gives."""

from pathlib import Path

import pytest

from launcher.backends.accelerate_file import read_file
from launcher.backends.options import BACKENDS
from launcher.errors import RecipeError


def written(tmp_path: Path, text: str, name: str = "mine.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        ("distributed_type: 'NO'\n", "single_gpu"),
        ("distributed_type: NO\n", "single_gpu"),
        ("distributed_type: MULTI_GPU\nnum_processes: 2\n", "multi_gpu"),
        ("distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {fsdp_version: 2}\n", "fsdp2"),
        (
            "distributed_type: FSDP\nnum_processes: 2\n"
            "fsdp_config: {fsdp_version: 2, fsdp_offload_params: true}\n",
            "fsdp2_offload",
        ),
        ("distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config: {zero_stage: 3}\n", "zero3"),
        (
            "distributed_type: DEEPSPEED\nnum_processes: 2\n"
            "deepspeed_config: {zero_stage: 2, offload_optimizer_device: cpu}\n",
            "zero2_offload",
        ),
        (
            "distributed_type: DEEPSPEED\nnum_processes: 2\n"
            "deepspeed_config: {deepspeed_config_file: ds_configs/zero1.json}\n",
            None,
        ),
    ],
)
def test_the_backend_follows_from_the_file(tmp_path: Path, text: str, backend: str | None) -> None:
    assert read_file(written(tmp_path, text)).backend == backend


def test_the_shipped_files_stand_for_what_they_are_named(root: Path) -> None:
    for backend in BACKENDS:
        found = read_file(root / f"accelerate_configs/{backend.name}.yaml")
        if backend.ds_config is not None:
            assert found.ds_file == f"ds_configs/{backend.name}.json"
        elif backend.name != "model_parallel":  # one process to Accelerate, whatever the cards
            assert found.backend == backend.name
        assert found.settings == {} and found.notices == ()


def test_facts_of_the_recipe_are_given_by_its_keys(tmp_path: Path) -> None:
    text = (
        "distributed_type: FSDP\nnum_processes: 4\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n"
        "  fsdp_activation_checkpointing: true\n  fsdp_transformer_layer_cls_to_wrap: A, B\n"
    )
    found = read_file(written(tmp_path, text))
    assert (found.num_processes, found.mixed_precision) == (4, "bf16")
    assert found.settings == {
        "backend.wrap_classes": ("A", "B"),
        "training.activation_checkpointing": True,
    }


def test_the_number_of_processes_may_be_the_command_lines(tmp_path: Path) -> None:
    assert read_file(written(tmp_path, "distributed_type: MULTI_GPU\n")).num_processes is None


def test_clipping_in_the_flat_keys_is_the_recipes_max_grad_norm(tmp_path: Path) -> None:
    text = "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config: {gradient_clipping: 0.5}\n"
    assert read_file(written(tmp_path, text)).settings == {"training.max_grad_norm": 0.5}


def test_b003_a_name_that_contradicts_the_stage_is_a_warning(tmp_path: Path) -> None:
    text = "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config: {zero_stage: 3}\n"
    (notice,) = read_file(written(tmp_path, text, "zero2.yaml")).notices
    assert "named for stage 2, but the stage inside is 3" in notice


def test_what_has_no_effect_is_said(tmp_path: Path) -> None:
    text = (
        "distributed_type: DEEPSPEED\nnum_processes: 2\nuse_cpu: true\n"
        "deepspeed_config: {zero_stage: 2, gradient_accumulation_steps: 4}\n"
    )
    said = "\n".join(read_file(written(tmp_path, text)).notices)
    assert "gradient_accumulation_steps is solved" in said and "use_cpu has no effect" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("distributed_type: MULTI_CPU\nnum_processes: 2\n", "distributed_type MULTI_CPU is not offered"),
        ("distributed_type: MULTI_GPU\nnum_processes: two\n", "num_processes is 'two'"),
        ("distributed_type: MULTI_GPU\nnum_processes: 0\n", "num_processes is 0"),
        ("num_proceses: 2\n", "did you mean num_processes"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        read_file(written(tmp_path, text))
