"""Every sample of every tool becomes a recipe that loads, and none of its keys is lost in silence."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import BadValue, RecipeError
from launcher.recipe.check import check
from launcher.recipe.importing.dialect import DIALECTS
from launcher.recipe.importing.draft import flat
from launcher.recipe.importing.importer import Imported, import_file
from launcher.recipe.importing.source import read_source
from launcher.recipe.importing.text import recipe_text, report
from launcher.recipe.load import load_recipe

SAMPLES = Path(__file__).parent / "samples"
FILES = sorted(path for path in SAMPLES.glob("*/*") if path.parent.name in DIALECTS.names())


def imported(tmp_path: Path, text: str, name: str = "file.yaml", **how: Any) -> Imported:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return import_file(path, **how)


def left(found: Imported) -> dict[str, str]:
    """What was left, with the reasons."""
    return {each.theirs: each.why for each in found.left}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_file_is_recognised_by_its_keys(path: Path) -> None:
    assert import_file(path).dialect.name == path.parent.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_recipe_loads_up_to_missing_files(path: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "imported.yaml"
    recipe.write_text(recipe_text(import_file(path)), encoding="utf-8")
    findings = check(str(recipe))
    assert findings.only_data or not findings.problems, findings.problems
    assert load_recipe(str(recipe)).notices == () or "note" not in recipe.read_text(encoding="utf-8")


def seen(found: Imported) -> Iterator[str]:
    for each in (*found.carried, *found.left):
        yield from each.theirs.split(" + ")
    yield from (*found.quiet, *found.needless)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_no_key_is_dropped_in_silence(path: Path) -> None:
    found = import_file(path)
    keys = [key for key, _ in flat(read_source(path).values, found.dialect.blocks)]
    told = set(seen(found))
    lost = [key for key in keys if not any(each == key or each.startswith(f"{key}.") for each in told)]
    assert len(keys) > 5
    assert lost == []


def test_a_key_without_a_row_does_not_pass_unseen(tmp_path: Path) -> None:
    """The negative of the test above: what nobody knows is in the list of what was left."""
    found = imported(tmp_path, "base_model: a/b\nsequence_len: 64\nzzz_unheard_of: {a: 1}\n")
    assert "zzz_unheard_of" in left(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_left_is_told_with_line_and_reason(path: Path) -> None:
    found = import_file(path)
    text = report(found)
    for each in found.left:
        assert each.why
        assert re.search(rf"{re.escape(path.name)}:\d+$", each.place), each
        assert each.theirs in text
        assert each.why in text


def test_the_global_batch_is_the_product_of_all_three(tmp_path: Path) -> None:
    words = "--per_device_train_batch_size 4 --gradient_accumulation_steps 2"
    found = imported(tmp_path, f"torchrun --nproc_per_node=8 run_clm.py {words}", "go.sh")
    assert found.values["training.global_batch_size"] == 64
    assert found.values["hardware.gpus"] == 8
    assert found.values["backend.name"] == "multi_gpu"


def test_an_unknown_number_of_processes_is_said(tmp_path: Path) -> None:
    text = '{"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}'
    alone = imported(tmp_path, text, "args.json")
    assert alone.values["training.global_batch_size"] == 8
    assert any("--gpus N" in note for note in alone.notes)
    told = imported(tmp_path, text, "args.json", gpus=3)
    assert told.values["training.global_batch_size"] == 24
    assert not any("--gpus N" in note for note in told.notes)


def test_b001_the_product_of_a_deepspeed_json_tells_the_processes(tmp_path: Path) -> None:
    text = '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}'
    found = imported(tmp_path, text, "ds.json")
    assert found.values["training.global_batch_size"] == 64
    assert found.values["hardware.gpus"] == 2


def test_b001_a_product_that_cannot_be_met_is_told(tmp_path: Path) -> None:
    text = '{"train_batch_size": 65, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}'
    found = imported(tmp_path, text, "ds.json")
    assert found.values["training.global_batch_size"] == 65
    assert "65 is not 4 x 8 x 1" in left(found)["gradient_accumulation_steps"]


def test_b003_a_key_in_the_wrong_block_is_told_with_its_home(tmp_path: Path) -> None:
    text = '{"zero_optimization": {"stage": 3}, "stage3_gather_16bit_weights_on_model_save": true}'
    found = imported(tmp_path, text, "zero2.json")
    assert "belongs under zero_optimization" in left(found)["stage3_gather_16bit_weights_on_model_save"]
    assert found.values["backend.name"] == "zero3"


def test_b009_a_device_map_is_not_carried_over(tmp_path: Path) -> None:
    found = imported(tmp_path, "base_model: a/b\nmicro_batch_size: 1\ndevice_map: auto\nsequence_len: 64\n")
    assert "device_map" in found.needless
    assert not [key for key in found.values if "device_map" in key]


def test_a_null_says_nothing_and_an_unknown_key_is_left(tmp_path: Path) -> None:
    found = imported(tmp_path, "base_model: a/b\nsequence_len: 64\nseed: null\nwarmup_step: 10\n")
    assert "seed" in found.quiet
    assert "training.seed" not in found.values
    assert left(found)["warmup_step"]
    assert next(each.nearest for each in found.left) == "did you mean warmup_steps?"


def test_other_defaults_than_ours_are_written_out(tmp_path: Path) -> None:
    factory = imported(tmp_path, "model_name_or_path: a/b\nstage: sft\nlora_rank: 32\ndataset: x\n")
    assert factory.values["adapter.lora_alpha"] == 64
    assert factory.values["adapter.lora_target_modules"] == "all-linear"
    assert factory.values["data.max_length"] == 2048
    axolotl = imported(tmp_path, "base_model: a/b\nsequence_len: 64\nmicro_batch_size: 2\n")
    assert axolotl.values["training.num_train_epochs"] == 1
    assert axolotl.values["training.lr_scheduler_type"] == "cosine"
    trainer = imported(tmp_path, '{"adam_beta1": 0.9, "num_train_epochs": 1}', "args.json", gpus=2)
    assert trainer.values["training.global_batch_size"] == 16


def test_two_keys_that_differ_are_told(tmp_path: Path) -> None:
    found = imported(tmp_path, '{"warmup_steps": 100, "warmup_ratio": 0.1, "adam_beta1": 0.9}', "args.json")
    assert found.values["training.warmup"] == 100
    assert "training.warmup is 100 already" in left(found)["warmup_ratio"]


def test_numbers_as_text_are_numbers(tmp_path: Path) -> None:
    found = imported(tmp_path, "{'learning_rate': '1e-5', 'adam_beta1': 0.8}", "args.json")
    assert found.values["training.learning_rate"] == 1e-5
    assert found.values["training.adam_beta1"] == 0.8


def test_python_is_read_and_not_run(tmp_path: Path) -> None:
    text = "open('/nowhere/at/all')\nargs = TrainingArguments(learning_rate=1e-4, output_dir=place())\n"
    found = imported(tmp_path, text, "train.py")
    assert found.values["training.learning_rate"] == 1e-4
    assert left(found)["output_dir"]


@pytest.mark.parametrize(
    ("way", "reshards", "is_left"),
    [
        ("FULL_SHARD", None, False),
        ("SHARD_GRAD_OP", False, False),
        (2, False, False),
        ("HYBRID_SHARD", None, True),
    ],
)
def test_the_first_fsdps_ways_of_sharding(
    tmp_path: Path, way: str | int, reshards: bool | None, is_left: bool
) -> None:
    text = f"distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {{fsdp_sharding_strategy: {way}}}\n"
    found = imported(tmp_path, text)
    assert found.values["backend.name"] == "fsdp2"
    assert found.values.get("backend.reshard_after_forward") is reshards
    assert ("fsdp_config.fsdp_sharding_strategy" in left(found)) is is_left


def test_json_with_comments_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="no comments"):
        imported(tmp_path, '// mine\n{"fp16": {"enabled": true}}', "ds.json")


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "training_args.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(BadValue, match="pickle"):
        import_file(tmp_path / "training_args.bin")


@pytest.mark.parametrize(
    ("text", "named", "project"),
    [
        (
            "stage: sft\nuse_swanlab: true\nswanlab_project: mine\nreport_to: tensorboard\n",
            ["tensorboard", "swanlab"],
            "mine",
        ),
        ("stage: sft\nuse_swanlab: false\nswanlab_project: mine\nreport_to: none\n", ["none"], None),
        ("base_model: a/b\nsequence_len: 64\nwandb_project: mine\n", ["wandb"], "mine"),
        ("base_model: a/b\nsequence_len: 64\nwandb_project:\nuse_trackio: true\n", ["trackio"], None),
    ],
)
def test_trackers_switched_on_one_by_one_become_one_list(
    tmp_path: Path, text: str, named: list[str], project: str | None
) -> None:
    found = imported(tmp_path, text)
    assert found.values.get("tracking.report_to") == named
    assert found.values.get("tracking.project") == project
    assert found.left == ()


@pytest.mark.parametrize("stage", ["dpo", "rm", "ppo", "kto"])
def test_preferences_are_refused(stage: str, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="not done here"):
        imported(tmp_path, f"stage: {stage}\nfinetuning_type: lora\ncutoff_len: 64\n")


def test_a_named_deepspeed_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3, "reduce_bucket_size": 100}}')
    found = imported(tmp_path, "python run_clm.py --deepspeed ds.json --bf16 --learning_rate 1e-5", "go.sh")
    assert found.values["backend.name"] == "zero3"
    assert found.values["backend.reduce_bucket_size"] == 100


def test_a_named_accelerate_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text("distributed_type: FSDP\nnum_processes: 4\nfsdp_config: {}\n")
    text = "accelerate launch --config_file acc.yaml run_clm.py --per_device_train_batch_size 2 --bf16"
    found = imported(tmp_path, text, "go.sh")
    assert found.values["backend.name"] == "fsdp2"
    assert found.values["training.global_batch_size"] == 8


def test_a_command_that_names_a_file_is_the_file_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "base_model: a/b\nsequence_len: 64\nmicro_batch_size: 2\nlearning_rate: 1e-4\n"
    )
    found = imported(tmp_path, "axolotl train job.yaml --learning-rate 3e-4 --num-processes 2", "go.sh")
    assert found.dialect.name == "axolotl"
    assert found.values["model.model_name_or_path"] == "a/b"


def test_a_data_set_is_found_in_the_table_of_data_sets(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    entry = {"file_name": "mine.json", "formatting": "sharegpt", "columns": {"messages": "talk"}}
    (tmp_path / "data" / "dataset_info.json").write_text(json.dumps({"mine": entry}))
    found = imported(tmp_path, "model_name_or_path: a/b\nstage: sft\ndataset: mine\nfinetuning_type: full\n")
    assert found.values["data.train_file"] == "data/mine.json"
    assert found.values["data.columns.turns"] == "talk"


def test_settings_are_laid_over_what_the_file_says(tmp_path: Path) -> None:
    text = '{"adam_beta1": 0.9, "learning_rate": 1e-3}'
    words = ("model_name_or_path=a/b", "train_file=x.csv", "task=classification", "learning_rate=1e-5")
    found = imported(tmp_path, text, "args.json", overrides=words)
    assert found.values["training.learning_rate"] == 1e-5
    assert found.to_say == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1, [2]]",
        "just words\n",
        "a: b: c",
        "- 1\n- 2\n",
        "key: value\n",
        '{"a": 1, "a": 2}',
        "\x00\x01",
    ],
)
def test_what_is_none_of_them_is_refused_in_words(text: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        imported(tmp_path, text)
    assert caught.value.problems[0].type


def test_what_we_write_for_the_trainer_comes_back(tmp_path: Path) -> None:
    """`launcher compile --to trainer` and `launcher import` undo each other, up to what is derived."""
    command = [
        "compile",
        "quickstart",
        "--to",
        "trainer",
        "--out",
        str(tmp_path / "out"),
        "weight_decay=0.02",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "launcher", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = import_file(tmp_path / "out" / "training_arguments.py")
    ours = load_recipe("quickstart", ["weight_decay=0.02"]).recipe.training
    for key in ("global_batch_size", "learning_rate", "weight_decay", "warmup", "num_train_epochs", "seed"):
        assert found.values.get(f"training.{key}") == getattr(ours, key), key
    assert found.left == ()


def test_arguments_as_they_are_printed_are_read(tmp_path: Path) -> None:
    lines = ("TrainingArguments(", "eval_strategy=IntervalStrategy.EPOCH,", "learning_rate=0.0001,",
             "output_dir=out/x y,", "report_to=['tensorboard'],", ")")  # fmt: skip
    found = imported(tmp_path, "\n".join(lines), "printed.txt")
    assert found.values["training.eval_steps"] == "1 epochs"
    assert found.values["training.learning_rate"] == 1e-4
    assert found.values["output_dir"] == "out/x y"


def test_no_token_is_shown_or_written(tmp_path: Path) -> None:
    text = (
        '{"adam_beta1": 0.8, "hub_token": "hf_abcdefghijklmnopqrstuvwx", "wandb_api_key": "0123456789abcdef"}'
    )
    found = imported(tmp_path, text, "args.json")
    said = recipe_text(found) + report(found)
    assert "hub_token" in said
    assert "hf_abcdef" not in said
    assert "0123456789" not in said


def test_what_is_so_anyway_is_told_and_not_written(tmp_path: Path) -> None:
    found = imported(tmp_path, '{"adam_beta1": 0.9, "adam_beta2": 0.95, "num_train_epochs": 3}', "args.json")
    assert "training.adam_beta1: 0.9" in report(found)
    text = recipe_text(found)
    assert "adam_beta1" not in text
    assert "adam_beta2: 0.95" in text
    assert "num_train_epochs: 3" in text


def test_b015_wrap_classes_are_carried_over_as_a_list(tmp_path: Path) -> None:
    text = (
        "distributed_type: FSDP\nnum_processes: 2\n"
        "fsdp_config: {fsdp_transformer_layer_cls_to_wrap: 'LlamaDecoderLayer, CLIPEncoderLayer'}\n"
    )
    found = imported(tmp_path, text)
    assert found.values["backend.wrap_classes"] == ["LlamaDecoderLayer", "CLIPEncoderLayer"]


def test_b016_fsdp_of_the_first_version_becomes_the_second_and_is_told(tmp_path: Path) -> None:
    block = "fsdp_config: {fsdp_version: 1, fsdp_use_orig_params: false}"
    text = f"distributed_type: FSDP\nnum_processes: 2\n{block}\n"
    found = imported(tmp_path, text)
    assert found.values["backend.name"] == "fsdp2"
    assert any("keeps whole gradients" in note for note in found.notes)


@pytest.mark.parametrize(
    ("command", "processes"),
    [
        ("torchrun --nproc-per-node 4 t.py", 4),
        ("python -m torch.distributed.run --nproc_per_node=2 t.py", 2),
        ("deepspeed --num_gpus 8 t.py", 8),
        ("deepspeed --include localhost:0,3 t.py", 2),
        ("accelerate launch --num_processes 3 t.py", 3),
        ("CUDA_VISIBLE_DEVICES=1 python t.py", 1),
        ("FORCE_TORCHRUN=1 NPROC_PER_NODE=6 llamafactory-cli train", 6),
        ("CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train", 2),
        ("nohup python t.py", None),
        ("CUDA_VISIBLE_DEVICES=0,1 python t.py", None),
    ],
)
def test_the_number_of_processes_is_read_off_the_command(
    command: str, processes: int | None, tmp_path: Path
) -> None:
    words = "--per_device_train_batch_size 5 --learning_rate 1e-5 2>&1 | tee log"
    text = f"#!/bin/bash\nset -e\n{command} {words}\n"
    found = imported(tmp_path, text, "go.sh")
    assert found.values["training.global_batch_size"] == 5 * (processes or 1)
    assert any("--gpus N" in note for note in found.notes) == (processes is None)


def test_the_command_line_stands_before_the_starters_file(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(
        "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: fp16\n", encoding="utf-8"
    )
    words = (
        "--config_file acc.yaml --num_processes 2 --mixed_precision bf16 t.py --per_device_train_batch_size 3"
    )
    found = imported(tmp_path, f"accelerate launch {words} --learning_rate 1e-5", "go.sh")
    assert found.values["hardware.gpus"] == 2
    assert found.values["training.global_batch_size"] == 6
    assert found.values["training.precision"] == "bf16"
    assert "training.precision is bf16 already" in left(found)["mixed_precision"]


def test_a_recipe_is_told_from_other_tools_files(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="this is a recipe already"):
        imported(tmp_path, "extends: quickstart\ntraining: {seed: 1}\n")


def test_a_product_without_rows_is_no_contradiction(tmp_path: Path) -> None:
    text = '{"train_batch_size": 64, "gradient_accumulation_steps": 8, "steps_per_print": 5}'
    found = imported(tmp_path, text, "ds.json")
    assert found.values["training.global_batch_size"] == 64
    assert found.left == ()
