"""Every recipe on every backend as concrete files: their real parsers take them, and nothing says auto."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from launcher.backends.options import BACKENDS
from launcher.errors import HardwareError, RecipeError, UnknownSetting
from launcher.hardware.ports import free_port
from launcher.plan.compile import Compiled, Wanted, compile_recipe
from launcher.plan.write_files import write_files
from launcher.recipe.library import names
from launcher.recipe.load import load_recipe
from tests import tiny
from tests.launching import trained


def compiled(recipe: str, backend: str, out: Path, *overrides: str, **changes: Any) -> Compiled:
    """That recipe for two cards, or one where the backend takes one."""
    gpus = BACKENDS.get(backend).max_ranks or 2
    values: dict[str, Any] = {"gpus": gpus, "gpu": "rtx4090"} | changes
    return compile_recipe(Wanted(recipe=recipe, backend=backend, out=out, overrides=overrides, **values))


def values(tree: Any) -> Iterator[Any]:
    """Every value in nested mappings and lists."""
    if isinstance(tree, dict):
        for inner in tree.values():
            yield from values(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from values(inner)
    else:
        yield tree


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.mark.parametrize("backend", BACKENDS.names())
@pytest.mark.parametrize("recipe", names())
def test_every_recipe_on_every_backend_is_taken_by_the_real_parsers(
    recipe: str, backend: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    try:
        made = compiled(recipe, backend, out / recipe / backend)
    except RecipeError as error:
        pytest.skip(f"refused: {error.problems[0].what}")
    folder = out / recipe / backend
    write_files(folder, made.files, force=False)
    for name in ("recipe.yaml", "accelerate.yaml", *(["ds.json"] if "ds.json" in made.files else [])):
        assert "auto" not in list(values(yaml.safe_load((folder / name).read_text()))), name
    ranks = BACKENDS.get(backend).max_ranks or 2
    assert load_config_from_file(str(folder / "accelerate.yaml")).num_processes == ranks
    concrete = load_recipe(str(folder / "recipe.yaml")).recipe
    assert (concrete.backend.name, concrete.hardware.gpus) == (backend, ranks)
    step = made.plan.step
    assert step.micro_batch_size * step.accumulation_steps * ranks == concrete.training.global_batch_size
    assert concrete.training.per_device_train_batch_size == step.micro_batch_size
    assert ("ds.json" in made.files) is (BACKENDS.get(backend).ds_config is not None)
    assert len(made.commands) == (2 if "ds.json" in made.files else 1)
    if "ds.json" in made.files:
        monkeypatch.setattr("deepspeed.comm.get_rank", lambda: 0)  # else it takes the world for one process
        deepspeed_takes(json.loads(made.files["ds.json"]), concrete.training.global_batch_size, ranks)


def deepspeed_takes(config: dict[str, Any], global_batch: int, ranks: int) -> None:
    """DeepSpeed's own class multiplies the three figures for the world that `mpu` describes."""
    from deepspeed.runtime.config import DeepSpeedConfig

    class World:
        """As many data-parallel ranks as were compiled for."""

        @staticmethod
        def get_data_parallel_world_size() -> int:
            return ranks

    read = DeepSpeedConfig(config, mpu=World())
    micro, accumulation = read.train_micro_batch_size_per_gpu, read.gradient_accumulation_steps
    assert read.train_batch_size == global_batch == micro * accumulation * ranks


def test_compiling_the_compiled_recipe_again_changes_nothing(tmp_path: Path) -> None:
    first = compiled("roberta_large_meld_3090", "zero3", tmp_path)
    write_files(tmp_path, first.files, force=False)
    again = compiled(str(tmp_path / "recipe.yaml"), "zero3", tmp_path)
    for name in ("recipe.yaml", "ds.json", "accelerate.yaml"):
        assert again.files[name] == first.files[name]
    assert again.plan.learning_rate == first.plan.learning_rate


def test_a_scaled_rate_is_written_once_and_not_scaled_again(tmp_path: Path) -> None:
    made = compiled("bert_base_imdb_3090", "multi_gpu", tmp_path)
    assert made.plan.learning_rate == pytest.approx(8e-5)
    write_files(tmp_path, made.files, force=False)
    training = load_recipe(str(tmp_path / "recipe.yaml")).recipe.training
    assert (training.learning_rate, training.lr_scaling) == (made.plan.learning_rate, "none")


def test_the_yaml_for_zero_points_at_the_json_beside_it(tmp_path: Path) -> None:
    config = yaml.safe_load(compiled("quickstart", "zero2", tmp_path).files["accelerate.yaml"])
    assert config["deepspeed_config"]["deepspeed_config_file"] == str(tmp_path / "ds.json")


def test_the_card_decides_the_precision(tmp_path: Path) -> None:
    assert compiled("quickstart", "zero2", tmp_path, gpu="rtx2080ti").plan.precision == "fp16"
    assert compiled("quickstart", "zero2", tmp_path, gpu="rtx4090").plan.precision == "bf16"
    with pytest.raises(HardwareError, match="no bf16 units"):
        compiled("quickstart", "zero2", tmp_path, "precision=bf16", gpu="rtx2080ti")


def test_without_a_card_a_cpu_is_compiled_for_and_said(tmp_path: Path) -> None:
    made = compiled("quickstart", "zero2", tmp_path, gpu=None)
    assert made.plan.device == "cpu"
    assert "compiled for a CPU" in made.notices[-1]


@pytest.mark.parametrize(
    ("gpu", "gpus", "carried"),
    [
        ("rtx4090", 2, True),
        ("rtx5090", 2, True),
        ("vgpu48", 2, True),
        ("vgpu48_350w", 2, True),
        ("rtx4080s_32", 2, True),
        ("rtx4090", 1, False),
        ("rtx3090", 2, False),
        ("a100_sxm_80", 2, False),
        ("v100_32_sxm2", 2, False),
    ],
)
def test_b059_cards_without_peers_are_kept_from_trying(
    gpu: str, gpus: int, carried: bool, tmp_path: Path
) -> None:
    made = compiled("quickstart", "zero2", tmp_path, gpu=gpu, gpus=gpus)
    for command in made.commands:
        assert command.startswith("NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1 ") is carried


def test_b015_several_wrap_classes_reach_accelerates_yaml_and_the_recipe(tmp_path: Path) -> None:
    made = compiled("quickstart", "fsdp2", tmp_path, "wrap_classes=[BertLayer, BertPooler]")
    config = yaml.safe_load(made.files["accelerate.yaml"])["fsdp_config"]
    assert config["fsdp_transformer_layer_cls_to_wrap"] == "BertLayer,BertPooler"
    assert config["fsdp_version"] == 2
    write_files(tmp_path, made.files, force=False)
    options = load_recipe(str(tmp_path / "recipe.yaml")).recipe.backend.model_dump()
    assert options["wrap_classes"] == ("BertLayer", "BertPooler")


def test_an_unknown_card_or_backend_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="rtx4090"):
        compiled("quickstart", "zero2", tmp_path, gpu="rtx409")
    with pytest.raises(UnknownSetting, match="zero3"):
        compile_recipe(Wanted(recipe="quickstart", backend="zreo3", out=tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("line", [0, 1])
def test_the_compiled_commands_start_as_typed_from_the_clone(line: int, tmp_path: Path) -> None:
    """On CPU ranks, with every file that was written."""
    model, rows = tiny.write_bert(tmp_path / "bert"), tiny.write_csv(tmp_path / "train.csv", 24)
    recipe = tmp_path / "job.yaml"
    recipe.write_text(
        f"task: classification\nmodel: {{model_name_or_path: {model}}}\n"
        f"data: {{train_file: {rows}, max_length: 40}}\noutput_dir: {tmp_path / 'runs'}\n"
        "training: {global_batch_size: 8, per_device_train_batch_size: 2, max_steps: 2, precision: fp32}\n"
    )
    made = compiled(str(recipe), "zero2", tmp_path / "made", gpu=None)
    write_files(tmp_path / "made", made.files, force=False)
    typed = made.commands[line].replace("deepspeed ", f"deepspeed --master_port {free_port()} ", 1)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = trained(["bash", "-c", typed], PATH=path).stderr
    assert "zero2: DeepSpeedEngine over 2 ranks" in said
    assert "batch 8: 2 rows x 2 accumulation x 2 rank(s)" in said
    assert (tmp_path / "runs" / "job" / "final").is_dir()
