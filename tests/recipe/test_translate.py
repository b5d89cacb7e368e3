"""Other tools' names: translated with one notice, or refused with the reason."""

from typing import Any

import pytest

from launcher.recipe.aliases import ALIASES, NOT_NEEDED, REFUSED
from launcher.recipe.build import value_at
from launcher.recipe.keys import is_known, known
from launcher.recipe.load import load_recipe

LORA = "adapter: {method: lora}\n"


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("lora_rank: 4", "adapter.lora_r", 4),
        ("target_modules: 'q_proj, v_proj'", "adapter.lora_target_modules", ("q_proj", "v_proj")),
        ("lora_target: all", "adapter.lora_target_modules", "all-linear"),
        ("lora_target_linear: true", "adapter.lora_target_modules", "all-linear"),
        ("cutoff_len: 128", "data.max_length", 128),
        ("max_seq_length: 128", "data.max_length", 128),
        ("sequence_len: 128", "data.max_length", 128),
        ("micro_batch_size: 4", "training.per_device_train_batch_size", 4),
        ("warmup_ratio: 0.1", "training.warmup", 0.1),
        ("warmup_steps: 100", "training.warmup", 100.0),
        ("gradient_checkpointing: true", "training.activation_checkpointing", True),
        ("torch_dtype: torch.float16", "model.dtype", "float16"),
        ("num_epochs: 2", "training.num_train_epochs", 2.0),
        ("lr: 1e-3", "training.learning_rate", 1e-3),
        ("bf16: true", "training.precision", "bf16"),
        ("fp16: true", "training.precision", "fp16"),
        ("mixed_precision: no", "training.precision", "fp32"),
        ("val_set_size: 0.1", "data.eval_fraction", 0.1),
        ("eval_strategy: no", "training.eval_steps", None),
        ("saves_per_epoch: 4", "training.save_steps", "0.25 epochs"),
        ("flash_attention: true", "model.attn_implementation", "flash_attention_2"),
        ("max_norm: 0.5", "training.max_grad_norm", 0.5),
        ("num_gpus: 2", "hardware.gpus", 2),
        ("text_column: review", "data.columns.text", "review"),
    ],
)
def test_a_pasted_name_is_translated_with_one_notice(write: Any, line: str, key: str, value: Any) -> None:
    loaded = load_recipe(str(write(f"{LORA}{line}\n")))
    found = value_at(loaded.recipe, tuple(key.split(".")))
    assert (str(found) if isinstance(value, str) else found) == value
    name = line.partition(":")[0]
    notices = [notice for notice in loaded.notices if f"job.yaml:5  {name} is called {key} here" in notice]
    assert len(notices) == 1


def test_names_are_translated_in_sections_and_on_the_command_line_too(write: Any) -> None:
    path = write("adapter: {method: lora, lora_rank: 4}\n")
    loaded = load_recipe(str(path), ["lr=3e-4", "adapter.target_modules=all"])
    assert loaded.recipe.training.learning_rate == 3e-4
    assert value_at(loaded.recipe, ("adapter", "lora_r")) == 4
    assert value_at(loaded.recipe, ("adapter", "lora_target_modules")) == "all-linear"


def test_base_model_and_dataset_fill_the_required_keys(write: Any) -> None:
    text = "task: causal_lm\nbase_model: some/model\ndatasets: [{path: a.jsonl, type: alpaca}]\n"
    recipe = load_recipe(str(write(whole=text))).recipe
    assert (recipe.model.model_name_or_path, recipe.data.train_file) == ("some/model", "a.jsonl")


def test_what_says_nothing_is_left_out_with_a_notice(write: Any) -> None:
    loaded = load_recipe(str(write("bf16: false\ndo_eval: true\ndo_train: true\neval_strategy: steps\n")))
    assert loaded.recipe.training.precision == "auto"
    assert len([notice for notice in loaded.notices if "left out" in notice]) == 4


@pytest.mark.parametrize(
    "line", ["device_map: auto", "device_map: {'': 0}", "dataparallel: true", "local_rank: 0"]
)
@pytest.mark.parametrize("place", ["top", "model", "command line"])
def test_b009_placement_is_the_launchers_and_is_refused_with_the_reason(
    write: Any, refuse: Any, line: str, place: str
) -> None:
    if place == "command line":
        error = refuse(write(), line.replace(": ", "=", 1))
    elif place == "top":
        error = refuse(write(f"{line}\n"))
    else:
        error = refuse(
            write(whole=f"task: classification\ndata: a.csv\nmodel: {{model_name_or_path: m, {line}}}\n")
        )
    (problem,) = error.problems
    assert "the launcher owns placement" in problem.what
    assert "backend" in problem.right


def test_accumulation_is_refused_with_the_batch_that_it_makes(write: Any, refuse: Any) -> None:
    path = write("gradient_accumulation_steps: 8\nmicro_batch_size: 4\nnum_gpus: 2\n")
    (problem,) = refuse(path).problems
    assert problem.where == "job.yaml:4"
    assert "4 x 8 accumulation x 2 cards" in problem.right
    assert problem.type == "global_batch_size: 64"
    (problem,) = refuse(write("training: {gradient_accumulation_steps: 8}\n")).problems
    assert problem.type == "global_batch_size: ..."
    (problem,) = refuse(
        write("training: {global_batch_size: 32}\n"), "gradient_accumulation_steps=8"
    ).problems
    assert problem.type == "remove this line"


@pytest.mark.parametrize(
    "name", ["batch_size: 8", "deepspeed: ds.json", "fsdp: full_shard", "quantization_bit: 4"]
)
def test_names_that_cannot_be_taken_are_refused_with_the_way_out(write: Any, refuse: Any, name: str) -> None:
    (problem,) = refuse(write(f"{name}\n")).problems
    assert "is not taken" in problem.what
    assert problem.right and problem.type


@pytest.mark.parametrize(
    "lines",
    [
        "bf16: true\nfp16: true\n",
        "data: {train_file: a.csv, max_length: 128, cutoff_len: 256}\n",
        "warmup_ratio: 0.1\nwarmup_steps: 100\n",
    ],
)
def test_one_fact_given_twice_and_differently_is_refused(write: Any, refuse: Any, lines: str) -> None:
    text = f"task: classification\nmodel: m\n{lines}" + ("" if "data" in lines else "data: a.csv\n")
    (problem,) = refuse(write(whole=text)).problems
    assert "is given twice" in problem.what


def test_one_fact_given_twice_and_alike_is_taken(write: Any) -> None:
    loaded = load_recipe(str(write("bf16: true\ntraining: {precision: bf16}\n")), ["seed=1", "seed=1"])
    assert loaded.recipe.training.precision == "bf16"


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("warmup_ratio: 2", "a share of all steps lies below 1"),
        ("val_size: 500", "only a share below 1"),
        ("datasets: [{path: a}, {path: b}]", "one file"),
        ("bf16: perhaps", "true or false"),
        ("evals_per_epoch: often", "a number of times"),
    ],
)
def test_a_value_that_cannot_be_translated_says_why(write: Any, refuse: Any, line: str, right: str) -> None:
    (problem,) = refuse(write(f"{line}\n")).problems
    assert right in problem.right


def test_the_table_names_real_keys_and_never_hides_one() -> None:
    leaves = {path[-1] for path in known()}
    for name, alias in ALIASES.items():
        assert is_known(tuple(alias.key.split("."))), name
        assert name not in leaves
    assert not leaves & {*REFUSED, *NOT_NEEDED}
    assert not set(ALIASES) & {*REFUSED, *NOT_NEEDED}
