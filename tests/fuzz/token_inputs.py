"""Data files on their whole way: looked at, tokenised and kept, put in order and padded, as a run does."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from launcher.data.batches_torch import eval_batches
from launcher.data.order import RowOrder
from launcher.data.survey import survey
from launcher.errors import LauncherError
from launcher.recipe.load import load_recipe
from launcher.train.prepared import Prepared, prepare_data
from tests import tiny
from tests.fuzz.mutations import as_yaml

KEPT = tempfile.TemporaryDirectory(prefix="fuzz-models-")


def token_options() -> st.SearchStrategy[dict[str, Any]]:
    """What is done with rows once they are read."""
    lengths = st.one_of(
        st.integers(2, 70),
        st.fixed_dictionaries(
            {"percentile": st.sampled_from((1, 50, 99.5, 100)), "cap": st.integers(2, 200)}
        ),
    )
    context = {
        "turns": st.integers(0, 4),
        "retention": st.sampled_from(("nearest", "tfidf")),
        "speakers": st.booleans(),
    }
    overlong = st.sampled_from(("auto", "keep_head", "keep_tail", "keep_head_tail", "windows", "drop"))
    cut = st.one_of(
        st.fixed_dictionaries({"overflow": overlong}),
        st.fixed_dictionaries({"overflow": st.just("windows"), "window_stride": st.integers(1, 40)}),
    )
    rest = st.fixed_dictionaries(
        {"max_length": lengths},
        optional={
            "context": st.fixed_dictionaries({}, optional=context),
            "packing": st.booleans(),
            "template": st.sampled_from(("auto", "chat", "chatml", "alpaca", "plain", "none")),
            "train_on": st.sampled_from(("completions", "all")),
            "max_lost_fraction": st.sampled_from((0.0, 0.5, 1.0)),
            "group_by_length": st.booleans(),
            "pad_to_multiple_of": st.integers(1, 9),
        },
    )
    return st.builds(lambda one, other: one | other, cut, rest)


@cache
def models() -> dict[str, str]:
    """A tiny model of each task, made once."""
    folder = Path(KEPT.name)
    return {
        "classification": str(tiny.write_bert(folder / "bert")),
        "causal_lm": str(tiny.write_llama(folder / "llama")),
    }


def use_as_both_tasks(path: Path, data: dict[str, Any], folder: Path) -> None:
    """As runs of both tasks would. Raises LauncherError where neither takes the rows."""
    refused: list[LauncherError] = []
    for task, model in models().items():
        try:
            _use(path, data, folder, task, model)
        except LauncherError as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[0]


def _use(path: Path, data: dict[str, Any], folder: Path, task: str, model: str) -> None:
    lines = {
        "summary": "s",
        "task": task,
        "model": {"model_name_or_path": model},
        "data": {"train_file": str(path), "eval_fraction": 0.3, "empty_text": "drop"} | data,
    }
    (file := folder / "job.yaml").write_text(as_yaml(lines), encoding="utf-8", errors="replace")
    recipe = load_recipe(str(file)).recipe
    made = prepare_data(recipe, say=str, root=folder / "cache")
    found = survey(recipe.data, task, recipe.training.seed, made.tokenizer, num_examples=2)
    assert not found.problems, found.problems
    assert found.as_json()["rows"] is not None
    _every_row_once(made)
    again = prepare_data(recipe, say=str, root=folder / "cache")
    assert again.store.input_ids.tolist() == made.store.input_ids.tolist()


def _every_row_once(made: Prepared) -> None:
    rows, width = [], made.store.max_length
    for ids, batch in eval_batches(made.store, 3, 0, 1, pad_token_id=0):
        rows += ids.tolist()
        assert batch["input_ids"].shape[1] <= width
    assert sorted(rows) == list(range(len(made.store)))
    order = RowOrder(made.store.lengths, 4, seed=1)
    steps = [row for step in range(order.steps_per_epoch) for row in order.window(step).tolist()]
    assert sorted(steps) == sorted(rows)
