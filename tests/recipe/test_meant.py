"""What was probably meant: numbers in other spellings, names of elsewhere, files of other tools, paths."""

from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.recipe.check import check
from launcher.recipe.load import load_recipe
from launcher.recipe.paths import path_slip


def said(*overrides: str) -> str:
    """What is said of the quickstart with these settings."""
    return "\n".join(problem.render() for problem in check("quickstart", overrides).problems)


@pytest.mark.parametrize(
    ("given", "typed"),
    [
        ("learning_rate=0,0001", "training.learning_rate=0.0001"),
        ("learning_rate=\u201c1e-4\u201d", "training.learning_rate=0.0001"),
        ("warmup=10%", "training.warmup=0.1"),
        ("num_train_epochs=3 epochs", "training.num_train_epochs=3"),
        ("global_batch_size=1,024", "training.global_batch_size=1024"),
        ("global_batch_size=2k", "training.global_batch_size=2000"),
        ("weight_decay=1/100", "training.weight_decay=0.01"),
        ("num_train_epochs=inf", "training.num_train_epochs=3.0"),
        ("per_device_train_batch_size=0", "training.per_device_train_batch_size=auto"),
        ("optim=AdamW", "training.optim=adamw_torch_fused"),
        ("optim=adamw_bnb_8bit", "training.optim=adamw_8bit"),
        ("precision=bfloat16", "training.precision=bf16"),
        ("precision=no", "training.precision=fp32"),
        ("attn_implementation=fa2", "model.attn_implementation=flash_attention_2"),
        ("lr_scheduler_type=cosine_with_restarts", "training.lr_scheduler_type=cosine"),
        ("backend=ddp", "multi_gpu"),
        ("backend=DeepSpeed", "zero2"),
        ("backend=ZeRO-3", "zero3"),
        ("backend=zero3_cpu", "zero3_offload"),
        ("backend=fsdp", "fsdp2"),
        ("adapter=qlora", "lora   (with model.load_in_4bit: true)"),
        ("adapter=prefix-tuning", "prefix"),
        ("adapter=houlsby", "bottleneck"),
        ("gpu=RTX 4090", "hardware.gpu=rtx4090"),
        ("gpu=A6000", "hardware.gpu=rtx_a6000"),
        ("bs=4", "global_batch_size: 4"),
        ("adapter.r=8", "adapter.lora_r=8"),
        ("adapter.dropout=0.1", "adapter.lora_dropout=0.1"),
        ("gpus=2,3", "hardware.gpus=2   (with CUDA_VISIBLE_DEVICES=2,3 in front)"),
        ("model_dtype=bfloat16", "model.dtype=bfloat16"),
        ("backend.stage=3", "backend=zero3"),
        ("backend.offload=true", "backend=zero3_offload"),
        ("device=gpu", "hardware.device=cuda"),
        ("max_steps=-1", "training.max_steps=null"),
        ("train_file=[a.csv, b.csv]", "data.train_file=parts/*.csv"),
        ("template=llama3", "template: chat"),
        ("overflow=truncate", "data.overflow=keep_head"),
        ("resume_from_checkpoint=true", "resume_from_checkpoint: auto, or --resume"),
        ("backend=zero2,gpus=2", "backend=zero2 gpus=2"),
        ("output_dir=$OUT/runs", 'output_dir="$OUT/runs"'),
    ],
)
def test_what_is_to_be_typed_is_what_was_meant(given: str, typed: str) -> None:
    assert f"type:  {typed}\n" in f"{said(given)}\n"


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("C:\\Users\\me\\train.csv", "/mnt/c/Users/me/train.csv"),
        ("data\\train.csv", "data/train.csv"),
        ("\u201ctrain.csv\u201d", "train.csv"),
        ("$HOME/train.csv", "$HOME/train.csv"),
    ],
)
def test_paths_that_cannot_be_meant_as_they_stand(text: str, typed: str) -> None:
    slip = path_slip(text)
    assert slip is not None
    assert slip[1] == typed
    assert path_slip("data/my train.csv") is None


def test_a_file_that_is_there_in_other_letters_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Train.CSV").write_text("text,label\na,0\n")
    assert "type:  data.train_file=Train.CSV" in said("train_file=train.csv", "eval_file=null")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("stage: sft\nlora_rank: 8\ndataset: x\ncutoff_len: 64\n", "launcher import"),
        ("base_model: a/b\nsequence_len: 64\nmicro_batch_size: 1\nadapter: lora\n", "launcher import"),
        ("distributed_type: FSDP\nnum_processes: 2\n", "--config_file"),
        ('{"zero_optimization": {"stage": 2}}', "--ds"),
    ],
)
def test_a_file_of_another_tool_is_one_finding(tmp_path: Path, text: str, typed: str) -> None:
    path = tmp_path / "theirs.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_recipe(str(path))
    assert len(caught.value.problems) == 1
    assert typed in caught.value.problems[0].type


def test_a_recipe_with_mistakes_is_not_taken_for_another_tools_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("model: {model_name_or_path: a/b}\ntrainning: {learning_rate: 1e-4}\nadapter: lora\n")
    with pytest.raises(RecipeError, match="trainning"):
        load_recipe(str(path))


def test_a_folder_and_a_part_of_a_name_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    Path("run/recipe.yaml").write_text("extends: quickstart\n")
    with pytest.raises(RecipeError, match="type:  run/recipe.yaml"):
        load_recipe("run")
    with pytest.raises(RecipeError, match=r"type:  llama3"):
        load_recipe("llama3")
    with pytest.raises(RecipeError, match="learning_rate=VALUE"):
        load_recipe("learning_rate:")


def test_a_file_here_of_a_shipped_name_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("quickstart.yaml").write_text("extends: quickstart\ntraining: {seed: 7}\n")
    loaded = load_recipe("quickstart")
    assert loaded.recipe.training.seed == 0
    assert "for the file of that name here type ./quickstart.yaml" in loaded.notices[0]
    assert load_recipe("./quickstart.yaml").notices == ()


@pytest.mark.parametrize("sign", [":", "=", "：", " = "])
def test_a_setting_without_a_colon_and_a_space_is_told(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"extends: quickstart\ntraining:\n  learning_rate{sign}1e-4\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"type:  training: \{learning_rate: 1e-4\}"):
        load_recipe(str(path))
