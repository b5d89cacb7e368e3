"""The key lists are those of the installed parsers: a new release that renames one is seen here."""

from typing import Any

import pytest

from launcher.backends.file_keys import ACCELERATE_BLOCKS, DS_BLOCKS, DS_REMOVED


def fields(model: Any) -> set[str]:
    """A pydantic model's keys as they stand in a file."""
    return {field.alias or name for name, field in model.model_fields.items()}


def test_zero_keys_are_deepspeeds() -> None:
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    assert DS_BLOCKS["zero_optimization"] == fields(DeepSpeedZeroConfig)


@pytest.mark.parametrize("name", ["offload_param", "offload_optimizer"])
def test_offload_keys_are_deepspeeds(name: str) -> None:
    from deepspeed.runtime.zero import offload_config

    model = {
        "offload_param": offload_config.DeepSpeedZeroOffloadParamConfig,
        "offload_optimizer": offload_config.DeepSpeedZeroOffloadOptimizerConfig,
    }[name]
    assert DS_BLOCKS[f"zero_optimization.{name}"] == fields(model)


def test_precision_keys_are_deepspeeds() -> None:
    from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config

    assert DS_BLOCKS["fp16"] == fields(DeepSpeedFP16Config)
    assert DS_BLOCKS["bf16"] == fields(DeepSpeedBF16Config)


def test_removed_keys_are_the_ones_that_deepspeed_refuses() -> None:
    from deepspeed.runtime import config

    removed = set(config._REMOVED_TOP_LEVEL_CONFIG_KEYS)
    removed |= {f"zero_optimization.{key}" for key in config._REMOVED_ZERO_CONFIG_KEYS}
    assert set(DS_REMOVED) == removed
    assert not removed & DS_BLOCKS[""]


def test_top_level_keys_hold_every_one_that_deepspeed_names() -> None:
    """The parser has no list of its own; its constants that a config file uses are all known."""
    from deepspeed.runtime import constants

    read = (
        "TRAIN_BATCH_SIZE",
        "OPTIMIZER",
        "SCHEDULER",
        "STEPS_PER_PRINT",
        "PRESCALE_GRADIENTS",
        "DATA_TYPES",
    )
    read += (
        "GRADIENT_CLIPPING",
        "CHECKPOINT",
        "COMMUNICATION_DATA_TYPE",
        "DATALOADER_DROP_LAST",
        "DUMP_STATE",
    )
    read += ("GRADIENT_ACCUMULATION_STEPS", "MANAGED_GRADIENT_ACCUMULATION", "TORCH_AUTOCAST", "PIPELINE")
    named = {getattr(constants, name) for name in read if hasattr(constants, name)}
    assert len(named) > 10
    assert named <= DS_BLOCKS[""]


def test_yaml_keys_are_accelerates() -> None:
    from accelerate.commands.config.config_args import ClusterConfig

    older = {"dynamo_backend", "fp16"}  # still converted on load
    assert set(ClusterConfig.__dataclass_fields__) | older == ACCELERATE_BLOCKS[""]


@pytest.mark.parametrize("block", ["deepspeed_config", "fsdp_config"])
def test_block_keys_are_options_of_accelerate_launch(block: str) -> None:
    from accelerate.commands.launch import launch_command_parser

    known = {action.dest for action in launch_command_parser()._actions}
    assert known >= ACCELERATE_BLOCKS[block]
