"""Scripts as people have them: Unsloth, notebooks, arrays in a shell, PowerShell, ms-swift."""

import json
from pathlib import Path

import pytest

from launcher.errors import BadValue
from launcher.recipe.importing.importer import Imported, import_file

UNSLOTH = """
max_seq_length = 2048
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name="unsloth/Meta-Llama-3.1-8B", max_seq_length=max_seq_length, dtype=None)
model = FastLanguageModel.get_peft_model(
    model, r=16, target_modules=["q_proj", "v_proj"], lora_alpha=32, lora_dropout=0,
    use_gradient_checkpointing="unsloth", random_state=3407)
trainer = SFTTrainer(model=model, dataset_text_field="body", packing=True,
    args=TrainingArguments(per_device_train_batch_size=2, learning_rate=2e-4, output_dir="o"))
"""


def imported(tmp_path: Path, text: str, name: str) -> Imported:
    """The text as a file of that name, imported."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return import_file(path)


def test_unsloths_calls_say_model_packing_and_pairs(tmp_path: Path) -> None:
    values = imported(tmp_path, UNSLOTH, "train.py").values
    assert values["model.model_name_or_path"] == "unsloth/Meta-Llama-3.1-8B"
    assert values["model.load_in_4bit"] is True  # its default, though the file does not say it
    assert values["adapter.method"] == "lora"
    assert (values["adapter.lora_r"], values["adapter.lora_alpha"]) == (16, 32)
    assert values["adapter.lora_target_modules"] == ["q_proj", "v_proj"]
    assert values["data.max_length"] == 2048
    assert values["data.columns.text"] == "body"
    assert values["training.activation_checkpointing"] is True
    assert values["task"] == "causal_lm"


def test_unsloths_full_fine_tuning_stays_full(tmp_path: Path) -> None:
    text = 'm = FastModel.from_pretrained("a/b", full_finetuning=True)\na = SFTConfig(learning_rate=1e-5)\n'
    values = imported(tmp_path, text, "train.py").values
    assert "model.load_in_4bit" not in values
    assert values.get("adapter.method", "full") == "full"


def test_a_notebooks_code_cells_are_read_as_one_file(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "source": ["!pip install trl\n", "LR = 2e-4\n"]},
        {"cell_type": "markdown", "source": ["SFTConfig(learning_rate=1)\n"]},
        {"cell_type": "code", "source": ["%time\n", "args = SFTConfig(learning_rate=LR)\n"]},
    ]
    found = imported(tmp_path, json.dumps({"cells": cells, "nbformat": 4}), "my.ipynb")
    assert found.values["training.learning_rate"] == 2e-4
    assert found.values["task"] == "causal_lm"


@pytest.mark.parametrize(
    "text",
    [
        'A=(\n  --model_name_or_path gpt2  # mine\n  --learning_rate 1e-4\n)\npython run_clm.py "${A[@]}"\n',
        'OPTS="--model_name_or_path gpt2"\nOPTS+=" --learning_rate 1e-4"\npython run_clm.py $OPTS\n',
        'OPTS="\n --model_name_or_path gpt2\n --learning_rate 1e-4\n"\npython run_clm.py $OPTS\n',
        "python run_clm.py `\n --model_name_or_path gpt2 `\n --learning_rate 1e-4\n",
        "set M=gpt2\npython run_clm.py ^\n --model_name_or_path gpt2 ^\n --learning_rate 1e-4\n",
    ],
)
def test_commands_are_put_together_as_their_shell_does(text: str, tmp_path: Path) -> None:
    values = imported(tmp_path, text, "go.sh").values
    assert values["model.model_name_or_path"] == "gpt2"
    assert values["training.learning_rate"] == 1e-4


def test_ms_swifts_own_names_are_read(tmp_path: Path) -> None:
    text = "swift sft --model Qwen/Qwen2.5-7B --train_type lora --lora_rank 8 --learning_rate 1e-4\n"
    values = imported(tmp_path, text, "go.sh").values
    assert values["model.model_name_or_path"] == "Qwen/Qwen2.5-7B"
    assert values["adapter.lora_r"] == 8


def test_alpacas_data_path_and_a_variable_that_nobody_sets(tmp_path: Path) -> None:
    words = "--model_name_or_path a/b --data_path {} --q_lora True --lora_r 8 --learning_rate 1e-4"
    found = imported(tmp_path, f"python train.py {words.format('rows.json')}", "go.sh")
    assert found.values["data.train_file"] == "rows.json"
    assert found.values["model.load_in_4bit"] is True
    unset = imported(tmp_path, f"python train.py {words.format('$DATA')}", "go.sh")
    assert "a variable that the file does not set" in [each.why for each in unset.left]
    assert any("data.train_file" in each for each in unset.to_say)


def test_an_adapters_config_is_read(tmp_path: Path) -> None:
    content = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj"]}
    content |= {"base_model_name_or_path": "a/b", "task_type": "SEQ_CLS"}
    values = imported(tmp_path, json.dumps(content), "adapter_config.json").values
    assert (values["adapter.lora_r"], values["task"]) == (8, "classification")
    assert values["model.model_name_or_path"] == "a/b"


@pytest.mark.parametrize("name", ["DPOConfig", "GRPOConfig", "RewardTrainer"])
def test_preferences_in_a_script_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="preferences or rewards"):
        imported(tmp_path, f"args = {name}(learning_rate=1e-6, beta=0.1)\n", "train.py")


def test_a_folder_names_the_files_in_it(tmp_path: Path) -> None:
    (tmp_path / "go.sh").write_text("echo\n")
    with pytest.raises(BadValue, match="in it: go.sh"):
        import_file(tmp_path)


def test_llama_factorys_qlora_is_lora_over_packed_weights(tmp_path: Path) -> None:
    text = "model_name_or_path: a/b\nstage: sft\nfinetuning_type: qlora\nlora_rank: 4\ndataset: x\n"
    values = imported(tmp_path, text, "lf.yaml").values
    assert (values["adapter.method"], values["model.load_in_4bit"]) == ("lora", True)
    assert values["adapter.lora_r"] == 4


def test_rows_of_data_are_told_from_settings(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="launcher data"):
        imported(tmp_path, '[{"instruction": "a", "output": "b"}]', "rows.json")
