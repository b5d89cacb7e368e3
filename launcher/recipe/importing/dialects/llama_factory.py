"""LLaMA-Factory's YAML or arguments: TrainingArguments, and its own keys for model, data and method."""

import json
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem
from launcher.recipe.importing.batch import settle_batch
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.dialects.trainer import settle_schedule
from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.nested_files import settle_backend, sought
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.tables.llama_factory import ROWS
from launcher.recipe.importing.trackers import settle_trackers
from launcher.recipe.importing.values import (
    names,
    whole_above_zero,
)

_STAGES = ("sft", "pt")


def settle(draft: Draft) -> None:
    """Stage and method first, then what TrainingArguments say together, then the rows' files."""
    _stage(draft)
    _method(draft)
    settle_backend(draft)
    settle_batch(
        draft,
        micro="per_device_train_batch_size",
        accumulation="gradient_accumulation_steps",
        default_micro=8,
    )
    settle_schedule(draft)
    settle_trackers(draft, switches={"use_swanlab": "swanlab"}, projects={"swanlab_project": "swanlab"})
    _data(draft)
    if not draft.has("cutoff_len"):
        draft.say("data.max_length", 2048, "LLaMA-Factory's default")


def _stage(draft: Draft) -> None:
    key, _ = draft.find("stage")
    stage = str(draft.take("stage", "sft"))
    if stage not in _STAGES:
        raise BadValue(
            Problem(
                where=draft.source.place(key),
                what=f"stage {stage}: training by preferences or rewards is not done here",
                right="stage sft or pt",
                type="docs/not-here.md says what is not done",
            )
        )
    draft.put(key, stage, {"task": "causal_lm"})


def _method(draft: Draft) -> None:
    key, _ = draft.find("finetuning_type")
    said = draft.take("finetuning_type")
    method = str(said or "lora")
    if method in ("qlora", "dora"):  # no words of its own, but what people write
        extra = {"qlora": {"model.load_in_4bit": True}, "dora": {"adapter.use_dora": True}}[method]
        draft.put(key, said, {"adapter.method": "lora", **extra})
        method = "lora"
    elif method in ("lora", "full"):
        if said:
            draft.put(key, said, {"adapter.method": method})
        else:
            draft.say("adapter.method", method, "LLaMA-Factory's default")
    else:
        draft.leave(
            key, said, f"method {method} has another form here", "adapter: full, lora, ia3, prefix ..."
        )
    if method != "lora":
        for name in ("lora_rank", "lora_alpha", "lora_dropout", "lora_target"):
            if draft.has(name):
                draft.quiet.append(name)
                draft.take(name)
        return
    if not draft.has("lora_target"):
        draft.say("adapter.lora_target_modules", "all-linear", "LLaMA-Factory's default")
    if not draft.has("lora_alpha") and (rank := _rank(draft)):
        draft.say("adapter.lora_alpha", 2 * rank, "LLaMA-Factory's default, twice the rank")


def _rank(draft: Draft) -> int:
    """The rank that is said; 0 for none, or one that is no number (its row tells)."""
    try:
        return whole_above_zero(draft.peek("lora_rank"))
    except (Nothing, ValueError, TypeError):
        return 0


def _data(draft: Draft) -> None:
    folder = draft.take("dataset_dir", "data")
    info = _info(draft, str(folder))
    for names_, ours in (("dataset", "data.train_file"), ("eval_dataset", "data.eval_file")):
        key, _ = draft.find(names_)
        value = draft.take(names_)
        if value is None:
            continue
        try:
            first, *others = names(value)
        except Nothing:
            draft.quiet.append(key)
            continue
        draft.put(key, value, _entry(draft, first, str(folder), info, ours))
        for other in others:
            why = "one file is trained on, or a folder of files with the same columns"
            draft.leave(key, other, why, "data.train_file: FOLDER")


def _info(draft: Draft, folder: str) -> dict[str, Any]:
    """The table of data sets, where it is found; what cannot be read counts as absent, and is told."""
    path = sought(draft, f"{folder}/dataset_info.json")
    if path is None:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        draft.notes.append(f"{path}: cannot be read: {error}")
        return {}
    return content if isinstance(content, dict) else {}


def _entry(draft: Draft, name: str, folder: str, info: dict[str, Any], ours: str) -> dict[str, Any]:
    """The file behind a data set's name, and its columns."""
    entry = info.get(name)
    if not isinstance(entry, dict):
        file = name if Path(name).suffix else f"{folder}/{name}.json"
        draft.notes.append(f"{ours}: {file}: by its name; no dataset_info.json tells more")
        return {ours: file}
    if "file_name" in entry:
        found = {ours: f"{folder}/{entry['file_name']}"}
    else:
        hub = entry.get("hf_hub_url") or entry.get("ms_hub_url") or name
        found = {ours: f"hf://{hub}"}
    columns = entry.get("columns")
    if ours == "data.train_file" and isinstance(columns, dict):
        found |= _columns(draft, name, columns, str(entry.get("formatting", "alpaca")))
    return found


def _columns(draft: Draft, name: str, columns: dict[str, Any], formatting: str) -> dict[str, Any]:
    roles = {
        "prompt": "instruction",
        "query": "input",
        "response": "output",
        "messages": "turns",
        "tools": "tools",
    }
    found = {}
    for role, column in columns.items():
        if role not in roles:
            draft.leave(f"{name}.columns.{role}", column, "rows have no such role here", "data.columns")
        elif roles[role] != column:
            found[f"data.columns.{roles[role]}"] = str(column)
    if formatting not in ("alpaca", "sharegpt"):
        draft.leave(
            f"{name}.formatting", formatting, "the shape is recognised from the columns", "data.layout"
        )
    return found


DIALECTS.register(
    "llama_factory",
    Dialect(
        name="llama_factory",
        title="LLaMA-Factory",
        page="from-llama-factory",
        rows=ROWS,
        signs=frozenset(
            {
                "finetuning_type",
                "cutoff_len",
                "lora_rank",
                "lora_target",
                "stage",
                "plot_loss",
                "dataset_dir",
                "template",
                "quantization_bit",
            }
        ),
        settle=settle,
        task="causal_lm",
    ),
)
