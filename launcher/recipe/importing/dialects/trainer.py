"""Hugging Face TrainingArguments, and the arguments of the example scripts and of TRL around them."""

from launcher.recipe.importing.batch import settle_batch
from launcher.recipe.importing.data_files import settle_files
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.intervals import settle_interval, settle_precision
from launcher.recipe.importing.method import settle_peft
from launcher.recipe.importing.nested_files import settle_backend
from launcher.recipe.importing.tables.trainer import SCRIPT_ROWS, TRAINING_ROWS
from launcher.recipe.importing.values import (
    is_on,
)


def settle(draft: Draft) -> None:
    """Batch, intervals, precision, backend, data files and method: what several keys say together."""
    settle_backend(draft)
    settle_batch(
        draft,
        micro="per_device_train_batch_size per_gpu_train_batch_size",
        accumulation="gradient_accumulation_steps",
        default_micro=8,
    )
    settle_schedule(draft)
    settle_peft(draft)
    settle_files(draft)
    _settle_task(draft)


def settle_schedule(draft: Draft) -> None:
    """Intervals and precision."""
    settle_interval(
        draft,
        strategy="eval_strategy evaluation_strategy",
        steps="eval_steps",
        ours="training.eval_steps",
        default_steps=draft.peek("logging_steps", 500),
    )
    settle_interval(
        draft,
        strategy="save_strategy",
        steps="save_steps",
        ours="training.save_steps",
        default_steps=500,
        unsaid="500 steps",
    )
    settle_precision(draft, fp16="fp16", bf16="bf16", what_else="the Trainer then computes in fp32")


def _settle_task(draft: Draft) -> None:
    """The script's name or the metric tells the task, where either does."""
    if draft.source.task:
        draft.say("task", draft.source.task, "by the model's class")
        return
    kind = str(draft.peek("task_type", "")).rpartition(".")[2]
    if task := {"CAUSAL_LM": "causal_lm", "SEQ_CLS": "classification"}.get(kind):
        draft.say("task", task, f"by task_type: {kind}")
        return
    script = draft.source.command.script if draft.source.command else ""
    metric = str(draft.peek("metric_for_best_model", ""))
    if any(part in script for part in ("glue", "classif", "xnli")) or draft.has("task_name"):
        draft.say(
            "task", "classification", f"by the script's name, {script}" if script else "by its arguments"
        )
    elif any(part in script for part in ("clm", "sft", "lm_no", "generat")) or is_on(draft.peek("packing")):
        draft.say("task", "causal_lm", f"by the script's name, {script}" if script else "by its arguments")
    elif "f1" in metric or "accuracy" in metric:
        draft.say("task", "classification", f"by metric_for_best_model: {metric}")


DIALECTS.register(
    "trainer",
    Dialect(
        name="trainer",
        title="Hugging Face TrainingArguments",
        page="from-trainer",
        rows=(*TRAINING_ROWS, *SCRIPT_ROWS),
        signs=frozenset(
            {
                "per_device_train_batch_size",
                "gradient_checkpointing",
                "evaluation_strategy",
                "optim",
                "eval_strategy",
                "adam_beta1",
                "num_train_epochs",
                "use_peft",
            }
        ),
        settle=settle,
    ),
)
