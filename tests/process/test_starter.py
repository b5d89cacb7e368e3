"""Who started this process, by the variables that accelerate 1.15, torchrun and deepspeed 0.19 leave."""

import json
from pathlib import Path

import pytest

from launcher.errors import BadValue, Conflict, UnknownSetting
from launcher.facts import RunArguments, Starter
from launcher.process.starter import read_starter, settled

TWO = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
ONE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
ACCELERATE = {"ACCELERATE_MIXED_PRECISION": "no"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": "2"}
DEEPSPEED = {"CROSS_RANK": "0", "CROSS_SIZE": "1", "LOCAL_SIZE": "2"}
USES_DEEPSPEED = {"ACCELERATE_USE_DEEPSPEED": "true"}


def typed(**values: str) -> RunArguments:
    """Arguments with a recipe and the given options."""
    return RunArguments(recipe="quickstart", **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environ", "name", "backend", "world_size"),
    [
        ({}, "python", None, 1),
        (ACCELERATE, "accelerate", "single_gpu", 1),
        (ACCELERATE | TORCHRUN | TWO, "accelerate", "multi_gpu", 2),
        (TORCHRUN | TWO, "torchrun", "multi_gpu", 2),
        (TORCHRUN | ONE, "torchrun", "single_gpu", 1),
        (DEEPSPEED | TWO, "deepspeed", None, 2),
        (DEEPSPEED | ONE, "deepspeed", None, 1),
    ],
)
def test_each_starter_is_told_apart(
    environ: dict[str, str], name: str, backend: str | None, world_size: int
) -> None:
    starter = read_starter(environ)
    assert (starter.name, starter.backend, starter.world_size) == (name, backend, world_size)


def test_ranks_are_read_and_deepspeeds_local_size_too() -> None:
    starter = read_starter(DEEPSPEED | TWO)
    assert (starter.rank, starter.local_rank, starter.local_world_size) == (1, 1, 2)


def test_accelerate_says_no_when_told_nothing() -> None:
    assert read_starter(ACCELERATE).mixed_precision is None
    assert read_starter({"ACCELERATE_MIXED_PRECISION": "bf16"}).mixed_precision == "bf16"


def test_the_json_in_accelerates_file_decides_and_is_found_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = (
        ACCELERATE | TWO | USES_DEEPSPEED | {"ACCELERATE_DEEPSPEED_CONFIG_FILE": "ds_configs/zero2.json"}
    )
    starter = read_starter(environ)
    assert starter.backend == "zero2"
    assert starter.config_file == str(root / "ds_configs/zero2.json")


def test_the_working_directory_comes_before_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ds_configs").mkdir()
    mine = tmp_path / "ds_configs" / "zero2.json"
    mine.write_text(json.dumps({"zero_optimization": {"stage": 2}}))
    monkeypatch.chdir(tmp_path)
    assert read_starter(DEEPSPEED | TWO, typed(ds="ds_configs/zero2.json")).config_file == str(mine)


@pytest.mark.parametrize("environ", [{}, ACCELERATE, TORCHRUN | TWO, DEEPSPEED | ONE])
def test_a_typed_json_decides_under_every_starter(environ: dict[str, str]) -> None:
    assert read_starter(environ, typed(ds="ds_configs/zero2.json")).backend == "zero2"


@pytest.mark.parametrize("environ", [{}, TORCHRUN | TWO, ACCELERATE | TORCHRUN | TWO])
def test_a_typed_backend_wins_where_it_can_be_met(environ: dict[str, str]) -> None:
    assert read_starter(environ, typed(backend="zero2")).backend == "zero2"


def test_an_unknown_backend_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownSetting, match="zero2"):
        read_starter({}, typed(backend="zreo2"))


USES_FSDP = ACCELERATE | TWO | {"ACCELERATE_USE_FSDP": "true"}


@pytest.mark.parametrize(("offload", "backend"), [("false", "fsdp2"), ("true", "fsdp2_offload")])
def test_an_fsdp_start_is_fsdp2_with_or_without_offload(offload: str, backend: str) -> None:
    environ = USES_FSDP | {"FSDP_VERSION": "2", "FSDP_OFFLOAD_PARAMS": offload}
    assert read_starter(environ).backend == backend


@pytest.mark.parametrize("environ", [USES_FSDP, USES_FSDP | {"FSDP_VERSION": "1"}])
def test_b016_fsdps_first_version_is_refused_and_the_second_named(environ: dict[str, str]) -> None:
    with pytest.raises(BadValue, match="fsdp_version: 2"):
        read_starter(environ)


def test_b015_wrap_classes_and_checkpointing_of_an_fsdp_file_are_the_recipes_facts() -> None:
    more = {"FSDP_TRANSFORMER_CLS_TO_WRAP": "BertLayer, BertPooler", "FSDP_ACTIVATION_CHECKPOINTING": "true"}
    starter = read_starter(USES_FSDP | {"FSDP_VERSION": "2"} | more)
    assert starter.settings == {
        "backend.wrap_classes": ("BertLayer", "BertPooler"),
        "training.activation_checkpointing": True,
    }
    assert read_starter(ACCELERATE | TWO | more).settings == {}


def test_a_json_for_a_backend_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}}')
    with pytest.raises(BadValue, match=r"mine\.json:1  a disk \(nvme\) is for stage 3, the stage is 2"):
        read_starter({}, typed(ds=str(path)))


def test_file_and_command_line_that_contradict_are_one_table() -> None:
    with pytest.raises(Conflict) as caught:
        read_starter(TORCHRUN | TWO, typed(ds="ds_configs/zero2.json", backend="multi_gpu"))
    assert "backend | -       | zero2 | multi_gpu" in str(caught.value)


def test_accelerates_json_and_another_typed_one_are_one_table(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"zero_optimization": {"stage": 2}}')
    environ = (
        ACCELERATE | TWO | USES_DEEPSPEED | {"ACCELERATE_DEEPSPEED_CONFIG_FILE": "ds_configs/zero2.json"}
    )
    with pytest.raises(Conflict, match="DeepSpeed JSON"):
        read_starter(environ, typed(ds=str(other)))


def test_the_same_json_twice_is_no_conflict() -> None:
    environ = (
        ACCELERATE | TWO | USES_DEEPSPEED | {"ACCELERATE_DEEPSPEED_CONFIG_FILE": "ds_configs/zero2.json"}
    )
    assert read_starter(environ, typed(ds="ds_configs/zero2.json")).backend == "zero2"


def test_one_process_backends_refuse_several() -> None:
    with pytest.raises(Conflict, match="torchrun started 2 processes"):
        read_starter(TORCHRUN | TWO, typed(backend="single_gpu"))


def test_ddp_from_bare_python_says_how_to_start_several() -> None:
    with pytest.raises(Conflict, match="launcher run RECIPE --backend multi_gpu --gpus 2"):
        read_starter({}, typed(backend="multi_gpu"))


def test_a_deepspeed_environment_refuses_ddp() -> None:
    with pytest.raises(Conflict, match=r"zero2   \| -    \| multi_gpu"):
        read_starter(ACCELERATE | TWO | USES_DEEPSPEED, typed(backend="multi_gpu"))


def test_flat_deepspeed_keys_are_read_by_their_stage() -> None:
    environ = ACCELERATE | TWO | USES_DEEPSPEED | {"ACCELERATE_DEEPSPEED_ZERO_STAGE": "2"}
    assert read_starter(environ).backend == "zero2"


def test_a_misspelt_key_that_accelerate_lets_through_is_found() -> None:
    environ = (
        ACCELERATE | TWO | USES_DEEPSPEED | {"ACCELERATE_CONFIG_DS_FIELDS": "zero_stge,gradient_clipping"}
    )
    with pytest.raises(UnknownSetting, match="did you mean zero_stage"):
        read_starter(environ)


def test_a_missing_json_is_named_with_where_it_was_looked_for() -> None:
    with pytest.raises(BadValue, match="nosuch.json  there is no such file"):
        read_starter({}, typed(ds="nosuch.json"))


def test_a_rank_that_is_no_number_is_refused() -> None:
    with pytest.raises(BadValue, match="unset RANK"):
        read_starter({"RANK": "first", "WORLD_SIZE": "1"})


@pytest.mark.parametrize(
    ("starter", "overrides", "backend"),
    [
        (Starter(name="python"), (), None),
        (Starter(name="python"), ("backend.name=zero2",), None),
        (Starter(name="python"), ("backend.name=multi_gpu",), "single_gpu"),
        (Starter(name="deepspeed"), ("backend.name=zero2",), None),
        (Starter(name="deepspeed"), (), "zero2"),
        (Starter(name="deepspeed", world_size=2), (), "zero2"),
        (Starter(name="torchrun", world_size=2, backend="multi_gpu"), ("backend.name=zero2",), "multi_gpu"),
    ],
)
def test_what_the_starter_left_open_is_settled_by_the_recipe(
    starter: Starter, overrides: tuple[str, ...], backend: str | None
) -> None:
    arguments = RunArguments(recipe="quickstart", overrides=overrides)
    assert settled(arguments, starter).backend == backend
