"""A finished run's model measured on a labelled file, by the code that measures it while it trains."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.place import kind_of
from launcher.data.read import read_rows
from launcher.data.reading import Reading
from launcher.data.recognise import recognise
from launcher.data.split import read_splits
from launcher.errors import BadValue, Problem
from launcher.export.as_trained import data_options, precision_of, tokens_of
from launcher.export.predict import Predictor
from launcher.precision_torch import StepPrecision
from launcher.registry import nearest
from launcher.step.module import TrainModule
from launcher.train.callbacks.evaluate import measured, run_rows


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The metrics over `rows` rows, of `steps` trained steps; lines for the person."""

    metrics: dict[str, float]
    rows: int
    steps: int
    notices: tuple[str, ...]


def evaluate_file(run: Path, file: str, *, batch_size: int, max_rows: int | None = None) -> Measured:
    """Metrics of the run's final model on every row of the file.

    Raises ExportError for a run without a model, DataError for a file of another shape, BadValue where its
    labels are not the model's.
    """
    used = Predictor(run)
    options = data_options(used.folder, used.facts).model_copy(
        update={"train_file": file, "max_train_rows": max_rows, "max_eval_rows": None}
    )
    examples, notices = _examples(options, used.facts)
    store = tokens_of(examples, used.tokenizer, options, used.facts)
    module = TrainModule(
        used.model,
        task=used.facts["task"],
        precision=StepPrecision(
            name=precision_of(used.folder, used.facts),
            device_type=used.device.type,
        ),
        chunk_bytes=None,
    )
    names = used.facts["label_names"]
    part = run_rows(
        module,
        store,
        batch_size,
        device=used.device,
        pad_token_id=used.tokenizer.pad_token_id,
        num_labels=len(names),
    )
    found = measured([part], store, len(names))
    return Measured(
        metrics=found, rows=len(examples), steps=used.facts["steps"], notices=(*notices, *store.notices)
    )


def _examples(options: DataOptions, facts: dict[str, Any]) -> tuple[Examples, tuple[str, ...]]:
    names = tuple(facts["label_names"])
    is_classes = facts.get("problem_type") != "regression" and facts["task"] == "classification"
    if is_classes and options.labels is None:
        _require_same_labels(options, names)
        options = options.model_copy(update={"labels": names})
    splits = read_splits(options, Path(options.train_file), None, facts["task"], 0)
    return splits.train, splits.notices


def _require_same_labels(options: DataOptions, names: tuple[str, ...]) -> None:
    """Labels that the model has never seen would be counted as mistakes, or as another class."""
    path = Path(options.train_file)
    if kind_of(path) in ("hub", "saved"):
        return
    table = read_rows(path, Reading.of(options))
    recognised = recognise(table, options, "classification")
    column = recognised.columns.get("label") or recognised.columns.get("labels")
    if column is None or recognised.layout.labels != "class":
        return
    values = dict.fromkeys(str(row[column]).strip() for row in table.rows if row.get(column) is not None)
    unknown = [value for value in values if value not in names]
    if not unknown:
        return
    close = nearest(unknown[0], names)
    raise BadValue(
        Problem(
            where=f"{path}: column {column}",
            what=f"{len(unknown)} labels the model does not know: {', '.join(unknown[:5])}",
            right=f"the model's labels: {', '.join(names)}" + (f"; nearest: {close}" if close else ""),
            type="a file with these labels, or another run",
        )
    )
