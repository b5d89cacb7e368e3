"""Rules between keys: each found where it holds, and silent where it does not."""

from typing import Any

import pytest

from launcher.data import templates
from launcher.recipe.data_rules import TEMPLATES
from launcher.recipe.load import load_recipe

EVAL = "eval_fraction=0.1"
BEST = [
    "load_best_model_at_end=true",
    "metric_for_best_model=macro_f1",
    "eval_steps=epoch",
    "save_steps=epoch",
]
CHAT = "task=causal_lm"


@pytest.mark.parametrize(
    ("overrides", "key", "words"),
    [
        ([EVAL, "eval_file=b.csv"], "data.eval_fraction", "both say what to evaluate on"),
        (BEST, "training.load_best_model_at_end", "without eval_fraction"),
        (
            ["load_best_model_at_end=true"],
            "training.load_best_model_at_end",
            "metric_for_best_model, eval_steps",
        ),
        ([EVAL, "early_stopping_patience=3"], "training.early_stopping_patience", "not evaluated on the way"),
        (
            [EVAL, "metric_for_best_model=bleu"],
            "training.metric_for_best_model",
            "not measured for classification",
        ),
        ([CHAT, EVAL, "metric_for_best_model=accuracy"], "training.metric_for_best_model", "for causal_lm"),
        (["lr_scaling=sqrt"], "training.lr_scaling", "no batch to scale from"),
        (["warmup=1.5"], "training.warmup", "neither a share"),
        (["global_batch_size=32", "gpus=3"], "training.global_batch_size", "do not divide evenly over 3"),
        (["backend=single_gpu", "gpus=2"], "backend.name", "runs 1 process"),
        (["gpu=rtx3091"], "hardware.gpu", "rtx3091"),
        (["dtype=float16"], "model.dtype", "cannot be trained by method full"),
        (["labels=[a, b, a]"], "data.labels", "a stand twice"),
        (["labels=[a]"], "data.labels", "1 label is too few"),
        (["report_to=[none, tensorboard]"], "tracking.report_to", "contradict"),
        ([CHAT, "template=llama3"], "data.template", "unknown template 'llama3'"),
        (["layout=alpaca"], "data.layout", "unknown layout 'alpaca'"),
        (["layout=instruction"], "data.layout", "is for task causal_lm"),
        (["columns.txt=a"], "data.columns.txt", "'txt' is no role"),
        (["pip_package=/model"], "model.pip_package", "names no distribution"),
    ],
)
def test_what_cannot_be_is_told(write: Any, refuse: Any, overrides: list[str], key: str, words: str) -> None:
    problems = refuse(write(), *overrides).problems
    found = [problem for problem in problems if problem.what.startswith(f"{key}:")]
    assert len(problems) == len(found) == 1
    assert words in found[0].what
    assert found[0].where == "command line"
    assert found[0].right and found[0].type


@pytest.mark.parametrize(
    "overrides",
    [
        [EVAL],
        [EVAL, *BEST],
        ["lr_scaling=sqrt", "lr_reference_batch_size=8"],
        ["warmup=100"],
        ["global_batch_size=33", "gpus=3"],
        ["dtype=float16", "adapter=lora"],
        ["gpu=rtx3090", "gpus=1", "device=cuda"],
        ["labels=[a, b]", "columns={text: A, label: B}", "layout=text_label"],
        [CHAT, "template=alpaca", "layout=instruction", "columns.instruction=q"],
    ],
)
def test_what_can_be_is_taken_without_a_word(write: Any, overrides: list[str]) -> None:
    assert load_recipe(str(write()), overrides).notices == ()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["lr_reference_batch_size=8"], "lr_scaling is none"),
        (["loss_chunk_bytes=1000"], "training.loss_chunk_bytes: has no effect: only causal_lm uses it"),
        (["fill.name=Ada"], "data.fill: has no effect"),
        ([CHAT, "labels=[a, b]"], "only classification uses it"),
        (["eval_steps=100"], "training.eval_steps: has no effect: no rows are held out"),
        (["metric_for_best_model=loss"], "no rows are held out"),
        (["per_device_train_batch_size=4"], "a step has 32 rows over all cards, by default"),
        (
            ["per_device_train_batch_size=64", "global_batch_size=32"],
            "a card's share of the batch is 32 rows",
        ),
        (["warmup=100", "max_steps=50"], "the rate is never fully reached"),
        (["gpu=rtx3090", "device=cpu"], "hardware.device is cpu"),
    ],
)
def test_what_changes_nothing_is_noticed(write: Any, overrides: list[str], words: str) -> None:
    (notice,) = load_recipe(str(write()), overrides).notices
    assert words in notice
    assert notice.startswith("command line  ")


@pytest.mark.parametrize("gpu", ["t4", "rtx2080ti", "v100_32_sxm2"])
def test_b004_bf16_on_an_older_card_says_what_will_happen(write: Any, gpu: str) -> None:
    path = write()
    (notice,) = load_recipe(str(path), [f"gpu={gpu}", "precision=bf16"]).notices
    assert "has no bf16 units" in notice and "precision=auto" in notice
    (notice,) = load_recipe(str(path), [f"gpu={gpu}", "precision=bf16-emulated"]).notices
    assert "slower than fp16" in notice
    (notice,) = load_recipe(str(path), [f"gpu={gpu}", "tf32=true"]).notices
    assert "has no TF32" in notice
    assert load_recipe(str(path), [f"gpu={gpu}", "precision=fp16"]).notices == ()
    assert load_recipe(str(path), ["gpu=rtx3090", "precision=bf16"]).notices == ()


def test_the_templates_are_those_that_the_data_part_has() -> None:
    assert ("auto", *templates.NAMES) == TEMPLATES


def test_packed_weights_are_not_trained(write: Any, refuse: Any) -> None:
    (problem,) = refuse(write(), "load_in_4bit=true").problems
    assert "packed" in problem.what and problem.type == "adapter: lora"


def test_b007_packed_weights_and_divided_weights_are_refused_with_what_works(write: Any, refuse: Any) -> None:
    (problem,) = refuse(write(), "load_in_4bit=true", "adapter=lora", "backend=zero3").problems
    assert "quantised weights does not run on zero3" in problem.what and problem.type == "backend: zero2"


def test_b018_a_prefix_keeps_its_cache(write: Any, refuse: Any) -> None:
    (problem,) = refuse(write("adapter: prefix\ntraining: {activation_checkpointing: true}\n")).problems
    assert "key-value cache" in problem.what and "p_tuning" in problem.type
