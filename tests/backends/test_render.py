"""The shipped configuration files are the rendered ones, and their real parsers take them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from launcher.backends.options import BACKENDS
from launcher.backends.render import files, json_text, write, yaml_text
from launcher.backends.zero import resolve
from launcher.facts import StepSettings

RENDERED = files()
STEP = StepSettings(global_batch_size=32, micro_batch_size=4, accumulation_steps=8, num_ranks=1)


@pytest.mark.parametrize("name", RENDERED)
def test_rendering_again_gives_the_committed_file(root: Path, name: str) -> None:
    assert (root / name).read_text(encoding="utf-8") == RENDERED[name], "run `make configs`"


def test_no_committed_file_is_without_its_backend(root: Path) -> None:
    found = {
        f"{path.parent.name}/{path.name}"
        for folder in ("accelerate_configs", "ds_configs")
        for path in (root / folder).iterdir()
    }
    assert found == set(RENDERED)


def test_write_makes_the_same_files_elsewhere(tmp_path: Path) -> None:
    written = write(tmp_path)
    assert {str(path.relative_to(tmp_path)): path.read_text() for path in written} == RENDERED


@pytest.mark.parametrize("name", [name for name in RENDERED if name.endswith(".yaml")])
def test_accelerate_reads_each_yaml(root: Path, name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(root / name))
    backend = BACKENDS.get(Path(name).stem)
    family = re.sub(r"\d.*", "", backend.name)
    expected = {"multi_gpu": "MULTI_GPU", "zero": "DEEPSPEED", "fsdp": "FSDP"}.get(family, "NO")
    assert config.distributed_type == expected
    assert config.num_processes == (1 if backend.max_ranks == 1 else 2)
    assert config.mixed_precision is None


@pytest.mark.parametrize("name", [name for name in RENDERED if name.endswith(".json")])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_deepspeed_reads_each_json_once_the_plan_has_resolved_it(name: str, precision: str) -> None:
    from deepspeed.runtime.config import DeepSpeedConfig

    resolved = resolve(json.loads(RENDERED[name]), step=STEP, precision=precision, max_grad_norm=1.0)
    config = DeepSpeedConfig(resolved)
    assert (config.train_batch_size, config.train_micro_batch_size_per_gpu) == (32, 4)
    assert config.gradient_accumulation_steps == 8
    assert config.gradient_clipping == 1.0
    assert (config.bfloat16_config.enabled, config.float16_config.enabled) == (
        precision == "bf16",
        precision == "fp16",
    )
    assert config.zero_optimization_stage == int(Path(name).stem[len("zero")])


def test_no_resolved_json_still_says_auto() -> None:
    for name, text in RENDERED.items():
        if name.endswith(".json"):
            resolved = resolve(json.loads(text), step=STEP, precision="fp32", max_grad_norm=1.0)
            assert '"auto"' not in json_text(resolved)


@pytest.mark.parametrize(
    "config",
    [
        {"distributed_type": "NO"},
        {"a": {"b": True, "c": "ds_configs/zero2.json"}},
        {"path": "/runs/my run: 1/ds.json"},
        {"text": "on", "number": 3, "numeric text": "3", "float text": "1e-5"},
    ],
)
def test_yaml_text_is_read_back_by_a_yaml_1_1_parser(config: dict[str, Any]) -> None:
    assert yaml.safe_load(yaml_text(config)) == config


def test_a_note_is_a_comment_above_its_key() -> None:
    assert yaml_text({"a": 1, "b": 2}, {"b": "why"}) == "a: 1\n# why\nb: 2\n"
