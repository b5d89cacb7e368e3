"""Axolotl's YAML."""

from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem
from launcher.recipe.importing.batch import settle_batch
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.draft import MISSING, Draft
from launcher.recipe.importing.intervals import settle_interval, settle_precision
from launcher.recipe.importing.nested_files import settle_backend
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.tables.axolotl import ROWS
from launcher.recipe.importing.trackers import settle_trackers
from launcher.recipe.importing.values import (
    above_zero,
)

_SWITCHES = {"use_tensorboard": "tensorboard", "use_swanlab": "swanlab", "use_trackio": "trackio"}
_PROJECTS = {"wandb_project": "wandb", "swanlab_project": "swanlab", "trackio_project_name": "trackio"}
_FILES = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".parquet", ".gz", ".zst")


def settle(draft: Draft) -> None:
    """Method, batch, backend, intervals and precision, rows; what Axolotl does where the file is silent."""
    _refuse_preferences(draft)
    _method(draft)
    draft.take("fsdp_version")
    settle_backend(draft)
    settle_batch(
        draft,
        micro="micro_batch_size",
        accumulation="gradient_accumulation_steps",
        whole="batch_size",
        default_micro=1,
    )
    for strategy, kind in (("eval_strategy evaluation_strategy", "eval"), ("save_strategy", "save")):
        settle_interval(
            draft, strategy=strategy, steps=f"{kind}_steps", ours=f"training.{kind}_steps", default_steps=500
        )
    settle_precision(
        draft, fp16="fp16 float16", bf16="bf16 bfloat16", what_else="Axolotl then computes in fp32"
    )
    settle_trackers(draft, switches=_SWITCHES, projects=_PROJECTS)
    _rows(draft)
    _template(draft)
    _silent(draft)


def _refuse_preferences(draft: Draft) -> None:
    if draft.has("rl") and str(draft.peek("rl")).lower() not in ("false", "none"):
        raise BadValue(
            Problem(
                where=draft.source.place("rl"),
                what=f"rl: {draft.peek('rl')}: training by preferences or rewards is not done here",
                right="a file without rl",
                type="docs/not-here.md says what is not done",
            )
        )


def _method(draft: Draft) -> None:
    key, value = draft.find("adapter")
    draft.take("adapter")
    text = str(value).lower()
    if value in (MISSING, None, ""):
        draft.values["adapter.method"] = "full"
        if value is not MISSING:
            draft.quiet.append(key)
        for name in ("lora_r", "lora_alpha", "lora_dropout", "lora_target_linear", "lora_target_modules"):
            if draft.find(name)[1] is not MISSING:
                draft.take(name)
                draft.quiet.append(name)
    elif text == "lora":
        draft.put(key, value, {"adapter.method": "lora"})
    elif text == "qlora":
        draft.put(key, value, {"adapter.method": "lora", "model.load_in_4bit": True})
    else:
        draft.leave(key, value, f"method {value} has another form here", "adapter: lora, ia3, prefix ...")


def _rows(draft: Draft) -> None:
    for names, ours in (("datasets", "data.train_file"), ("test_datasets", "data.eval_file")):
        key, value = draft.find(names)
        draft.take(names)
        if value in (MISSING, None, []):
            continue
        sets = value if isinstance(value, list) else [value]
        first = sets[0] if isinstance(sets[0], dict) else {"path": str(sets[0])}
        _one_set(draft, key, first, ours)
        for other in sets[1:]:
            path = other.get("path", other) if isinstance(other, dict) else other
            why = "one file is trained on, or a folder of files with the same columns"
            draft.leave(f"{key}.path", path, why, "data.train_file: FOLDER")


def _one_set(draft: Draft, key: str, entry: dict[str, Any], ours: str) -> None:
    path = str(entry.get("path", ""))
    files = entry.get("data_files")
    file = files[0] if isinstance(files, list) and files else files
    is_local = (
        path in ("json", "csv", "text", "parquet")
        or Path(path).suffix in _FILES
        or path.startswith((".", "/"))
    )
    local = str(file) if file and (is_local or Path(str(file)).exists()) else path if is_local else ""
    is_train = ours == "data.train_file"
    found: dict[str, Any] = {ours: local or f"hf://{path}"}
    if is_train and not local and entry.get("name"):
        found["data.subset"] = str(entry["name"])
    if not local and entry.get("split"):
        found["data.train_split" if is_train else "data.eval_split"] = str(entry["split"])
    if is_train:
        found |= _columns(entry)
    draft.put(f"{key}.path", path, found)
    _rest(draft, key, entry, is_local=bool(local), file=file, is_train=is_train)


def _columns(entry: dict[str, Any]) -> dict[str, Any]:
    """The columns that a data set's entry names, by the roles that rows have here."""
    roles = {
        "field": "text",
        "field_messages": "turns",
        "field_instruction": "instruction",
        "field_input": "input",
        "field_output": "output",
    }
    return {
        f"data.columns.{role}": str(entry[name])
        for name, role in roles.items()
        if entry.get(name) and entry[name] != role
    }


_TYPES = ("alpaca", "chat_template", "completion", "sharegpt", "input_output", "")


def _rest(
    draft: Draft, key: str, entry: dict[str, Any], *, is_local: bool, file: Any, is_train: bool
) -> None:
    """What else an entry says, told one by one."""
    kind = entry.get("type", "")
    if isinstance(kind, dict):
        draft.leave(f"{key}.type", kind, "a prompt written in the file", "data.template, data.columns")
    elif str(kind).partition(".")[0] not in _TYPES:
        draft.leave(
            f"{key}.type", kind, "the shape is recognised from the columns", "data.layout, data.template"
        )
    elif kind == "alpaca" and is_train:
        draft.put(f"{key}.type", kind, {"data.template": "alpaca"})
    known = ("path", "type", "field", "field_messages", "field_instruction", "field_input", "field_output")
    taken = {
        *known,
        *(() if is_local else ("name", "split")),
        *(("data_files",) if is_local or not file else ()),
    }
    for name, value in entry.items():
        if name in (
            "ds_type",
            "conversation",
            "message_field_role",
            "message_field_content",
            "data_files",
        ) and (name in taken or name == "ds_type"):
            draft.quiet.append(f"{key}.{name}")
        elif name not in taken and value not in (None, False, "", []):
            draft.leave(f"{key}.{name}", value, "rows are read by their columns", "data.columns, data.layout")


def _template(draft: Draft) -> None:
    key, value = draft.find("chat_template")
    draft.take("chat_template")
    if value in (MISSING, None, ""):
        return
    text = str(value)
    name = {"alpaca": "alpaca", "chatml": "chatml"}.get(text, "chat")
    if "{" in text or text == "jinja":
        draft.leave(key, value, "a template written in the file", "data.template: chat, the model's own")
    elif "data.template" not in draft.values:
        draft.put(key, value, {"data.template": name})
        if name == "chat" and text not in ("tokenizer_default",):
            draft.notes.append(f"data.template: chat: the model's own template stands for {text}")
    else:
        draft.quiet.append(key)


def _silent(draft: Draft) -> None:
    """Defaults of Axolotl's that differ from ours are written out."""
    for names, ours, default in (
        ("num_epochs", "training.num_train_epochs", 1),
        ("lr_scheduler", "training.lr_scheduler_type", "cosine"),
    ):
        key, _ = draft.find(names)
        value = draft.take(names)
        if value is None:
            draft.say(ours, default, "Axolotl's default")
            continue
        try:
            draft.put(key, value, {ours: above_zero(value) if ours.endswith("epochs") else str(value)})
        except (Nothing, ValueError) as error:
            draft.leave(key, value, f"{ours}: {error or 'a number above zero is wanted'}", ours)


DIALECTS.register(
    "axolotl",
    Dialect(
        name="axolotl",
        title="Axolotl",
        page="from-axolotl",
        rows=ROWS,
        signs=frozenset(
            {
                "base_model",
                "micro_batch_size",
                "sequence_len",
                "sample_packing",
                "val_set_size",
                "datasets",
                "lora_target_linear",
                "num_epochs",
                "pad_to_sequence_len",
                "wandb_project",
            }
        ),
        settle=settle,
        task="causal_lm",
    ),
)
