"""Which rows: a script's files, or a data set of the hub."""

from pathlib import Path
from typing import Any

from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.values import number

FILE, EVAL = "data.train_file", "data.eval_file"


def settle_files(draft: Draft) -> None:
    """Files first; else a hub data set by its name, GLUE's by its task."""
    files = _take(draft, "train_file data_path", "validation_file eval_file eval_data_path", "test_file")
    hub = _take(draft, "dataset_name", "dataset_config_name dataset_config", "task_name")
    (train_key, train), (eval_key, evaluation), (test_key, test) = files
    if train is not None:
        draft.put(train_key, train, {FILE: str(train)})
    elif hub[0][1] is not None:
        _hub(draft, *hub[0], hub[1])
    elif hub[2][1] is not None:
        task = str(hub[2][1]).lower()
        draft.put(hub[2][0], hub[2][1], {FILE: "hf://nyu-mll/glue", "data.subset": task})
        hub[2] = (hub[2][0], None)
    _leave(draft, [*(hub if train is not None else ()), *([hub[2]] if hub[0][1] is not None else ())])
    if evaluation is not None:
        draft.put(eval_key, evaluation, {EVAL: str(evaluation)})
        _leave(draft, [(test_key, test)])
    elif test is not None:
        draft.put(test_key, test, {EVAL: str(test)})
    _splits(draft)
    _held_out(draft)


def _take(draft: Draft, *names: str) -> list[tuple[str, Any]]:
    return [(draft.find(each)[0], draft.take(each)) for each in names]


def _hub(draft: Draft, key: str, value: Any, subset: tuple[str, Any]) -> None:
    """A name with an owner is the hub's; a local file is itself."""
    text = str(value)
    is_file = Path(text).suffix != "" or text.startswith((".", "/"))
    ours = {FILE: text if is_file else f"hf://{text}"}
    draft.put(key, value, ours)
    if subset[1] is not None:
        draft.put(*subset, {"data.subset": str(subset[1])})


def _leave(draft: Draft, rest: list[tuple[str, Any]]) -> None:
    for key, value in rest:
        if value is not None:
            draft.leave(key, value, "another key names the rows already", FILE)


def _splits(draft: Draft) -> None:
    for names, ours in (
        ("dataset_train_split train_split", "data.train_split"),
        ("dataset_test_split eval_split", "data.eval_split"),
    ):
        key, _ = draft.find(names)
        value = draft.take(names)
        if value is not None:
            draft.put(key, value, {ours: str(value)})


def _held_out(draft: Draft) -> None:
    key, _ = draft.find("validation_split_percentage")
    value = draft.take("validation_split_percentage")
    if value is None:
        return
    try:
        percent = number(value)
    except (Nothing, ValueError):
        draft.leave(key, value, "data.eval_fraction: a number of percent is wanted", "eval_fraction: 0.05")
        return
    if EVAL in draft.values:
        draft.quiet.append(key)
    elif 0 < percent < 100:
        draft.put(key, value, {"data.eval_fraction": percent / 100})
    else:
        draft.quiet.append(key)
