"""Data in files and data in memory give the same rows, the same findings and the same tokens."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launcher.data import examples, number_file, ragged, spool, text_file, token_store
from launcher.data.options import DataOptions
from launcher.data.picked import Picked
from launcher.data.split import Splits, read_splits
from launcher.data.spool import Spool, Viewed
from launcher.data.tokens import TokenStore, tokenise
from launcher.errors import DataError

WORDS = ["the", "a", "cat", "dog", "sat", "on", "mat", "good", "bad", "film", "was", "very", "not", "funny"]
NUM = 60


def sentence(number: int) -> str:
    return " ".join(WORDS[(number * 7 + step) % len(WORDS)] for step in range(3 + number % 11)) + f" {number}"


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow writes the file")
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


CLASSES = [{"text": sentence(number), "label": number % 3} for number in range(NUM)]
QUOTED = [{"text": f'one\n"two", {sentence(number)}', "label": "ab"[number % 2]} for number in range(NUM)]
TWICE = [*CLASSES, *CLASSES[:20], {"text": "", "label": 1}]
PAIRS = [
    {"premise": sentence(number), "hypothesis": sentence(3 * number), "label": number % 2}
    for number in range(NUM)
]
SETS = [{"text": sentence(number), "tags": ["x", "y"][: number % 3]} for number in range(NUM)]
NUMBERS = [{"text": sentence(number), "score": number / 7} for number in range(NUM)]
TASKS = [
    {"instruction": sentence(number), "input": "", "output": sentence(2 * number)} for number in range(NUM)
]
TALKS = [
    {
        "messages": [
            {"role": role, "content": sentence(number + place)}
            for place, role in enumerate(("user", "assistant") * (1 + number % 3))
        ]
    }
    for number in range(NUM)
]
PROSE = "".join(f"{sentence(number)}\n" + "\n" * (number % 4 == 0) for number in range(NUM)).encode()
LINES = "".join(f"{sentence(number)}\n" for number in range(NUM)).encode()
C1 = as_csv([{"text": f"she\x92s\xa0{row['text']}", "label": row["label"]} for row in CLASSES])
MEMBERS = [
    {
        "Utterance": sentence(n),
        "Speaker": "ab"[n % 2],
        "Emotion": "cd"[n % 2],
        "Dialogue_ID": n // 5,
        "Utterance_ID": n % 5,
    }
    for n in range(NUM)
]

CASES: list[tuple[str, bytes, str, dict[str, Any]]] = [
    ("a.csv", as_csv(CLASSES), "classification", {}),
    ("a.csv", as_csv(QUOTED), "classification", {"max_length": {"percentile": 50, "cap": 64}}),
    ("a.csv", C1, "classification", {"eval_fraction": 0.3}),
    ("a.csv", as_csv(TWICE), "classification", {"drop_duplicates": True, "empty_text": "drop"}),
    ("a.csv", as_csv(TWICE), "classification", {"empty_text": "keep", "max_train_rows": 30}),
    ("a.tsv", as_csv(QUOTED, "\t"), "classification", {"max_length": 9, "overflow": "windows"}),
    ("a.tsv", LINES.replace(b" ", b"\t", 1), "causal_lm", {"format": "txt"}),
    ("a.csv.gz", gzip.compress(as_csv(CLASSES)), "classification", {"max_length": 7, "overflow": "drop"}),
    ("a.jsonl", as_lines(CLASSES), "classification", {"max_length": 7, "overflow": "keep_head_tail"}),
    ("a.json", json.dumps(CLASSES).encode(), "classification", {"class_weights": "balanced"}),
    ("a.parquet", as_parquet(CLASSES), "classification", {}),
    ("a.csv", as_csv(CLASSES).decode().encode("utf-16"), "classification", {"encoding": "utf-16"}),
    (
        "a.csv",
        as_csv([{**row, "text": row["text"] + " é"} for row in CLASSES]).decode().encode("cp1252"),
        "classification",
        {},
    ),
    ("a.csv", as_csv(PAIRS), "classification", {"max_length": 12}),
    ("a.csv", as_csv(MEMBERS), "classification", {"context": {"turns": 3}, "max_length": 20}),
    (
        "a.csv",
        as_csv(MEMBERS[::-1]),
        "classification",
        {"context": {"turns": 3, "retention": "tfidf", "place": "behind"}, "max_length": 20},
    ),
    ("a.jsonl", as_lines(SETS), "classification", {"layout": "multi_label"}),
    ("a.jsonl", as_lines(NUMBERS), "classification", {"layout": "regression"}),
    ("a.jsonl", as_lines(TASKS), "causal_lm", {"max_length": {"percentile": 80, "cap": 90}}),
    ("a.jsonl", as_lines(TASKS), "causal_lm", {"max_length": 70, "overflow": "drop", "train_on": "all"}),
    ("a.jsonl", as_lines(TASKS), "causal_lm", {"packing": True, "max_length": 200, "fill": {"x": "y"}}),
    (
        "a.jsonl",
        as_lines(TALKS),
        "causal_lm",
        {"template": "chatml", "max_length": 90, "max_lost_fraction": 1.0},
    ),
    ("a.txt", PROSE, "causal_lm", {"max_length": 32}),
    ("a.txt", LINES, "causal_lm", {"max_length": 32, "packing": True}),
]


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch):
    """Nothing stays in memory from now on that may lie in a file."""

    def switch() -> None:
        monkeypatch.setattr(spool, "BLOCK_ROWS", 7)
        monkeypatch.setattr(text_file, "HELD_BYTES", 10)
        monkeypatch.setattr(examples, "BLOCK_ROWS", 11)
        for module in (spool, number_file):
            monkeypatch.setattr(module, "HELD_BYTES", 0)
        for module in (ragged, token_store):
            monkeypatch.setattr(module, "BLOCK_ROWS", 8)

    return switch


def made(path: Path, task: str, options: dict[str, Any], tokenizer: Any) -> tuple[Splits, list[TokenStore]]:
    settings = DataOptions.model_validate({"train_file": "x", **options})
    splits = read_splits(settings, path, None, task, 3)
    more = {"options": settings, "task": task, "template": settings.template, "token_types": True}
    store = tokenise(splits.train, tokenizer, **more)
    held = splits.evaluation
    return splits, [store] if held is None else [
        store,
        tokenise(held, tokenizer, length=store.length, **more),
    ]


def facts(splits: Splits, stores: list[TokenStore]) -> Any:
    """All that was found, as plain lists."""
    rows = [each for each in (splits.train, splits.evaluation) if each is not None]
    return [
        splits.notices,
        splits.label_names,
        splits.class_weights,
        splits.columns,
        [
            (
                {role: list(column) for role, column in each.texts.items()},
                list(each.lines),
                None if each.turns is None else list(each.turns),
                None if each.labels is None else each.labels.tolist(),
                None
                if each.dialogues is None
                else (
                    list(each.dialogues.texts),
                    list(each.dialogues.speakers),
                    each.dialogues.offsets.tolist(),
                ),
            )
            for each in rows
        ],
        [
            {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in vars(store).items()
            }
            for store in stores
        ],
    ]


@pytest.mark.parametrize(("name", "data", "task", "options"), CASES, ids=range(len(CASES)))
def test_rows_in_files_are_the_rows_in_memory(
    name: str,
    data: bytes,
    task: str,
    options: dict,
    write: Any,
    files: Any,
    word_tokenizer: Any,
    chat_tokenizer: Any,
) -> None:
    path = write(name, data)
    tokenizer = word_tokenizer if task == "classification" else chat_tokenizer
    expected = facts(*made(path, task, options, tokenizer))
    files()
    splits, stores = made(path, task, options, tokenizer)
    assert facts(splits, stores) == expected
    rows = splits.train.turns if splits.train.turns is not None else next(iter(splits.train.texts.values()))
    assert isinstance(rows, Spool | Picked | Viewed)
    if splits.evaluation is not None:
        assert len(splits.evaluation) == round(0.3 * NUM)


BROKEN: list[tuple[str, bytes, str]] = [
    ("a.csv", as_csv(CLASSES) + b"a,b,c\n" * 30, "classification"),
    ("a.csv", as_csv(CLASSES) + b'"never closed,1\n', "classification"),
    ("a.csv", as_csv(CLASSES) + "caf\xe9,1\n".encode("latin-1") + "é é é é".encode(), "classification"),
    ("a.csv", as_csv(CLASSES) + b"x,\n", "classification"),
    ("a.csv", as_csv(CLASSES) + b",1\n" * 9, "classification"),
    ("a.jsonl", as_lines(TASKS) + b'{"instruction": "a", "output": 7}\n' * 2, "causal_lm"),
    ("a.jsonl", as_lines(TASKS) + b'{"instruction": "a", "out', "causal_lm"),
    ("a.jsonl", as_lines(TALKS) + b'{"messages": [{"role": "usr", "content": "a"}]}\n', "causal_lm"),
    ("a.jsonl", as_lines(SETS) + b'{"text": "a", "tags": {"x": 1}}\n', "classification"),
    ("a.csv.gz", gzip.compress(as_csv(CLASSES))[:-9], "classification"),
    ("a.csv", b" \n" * 30, "classification"),
]


@pytest.mark.parametrize(("name", "data", "task"), BROKEN, ids=range(len(BROKEN)))
def test_mistakes_in_files_are_told_as_those_in_memory(
    name: str, data: bytes, task: str, write: Any, files: Any
) -> None:
    path = write(name, data)
    options = DataOptions(train_file="x", layout="multi_label" if b"tags" in data else "auto")

    def told() -> list[Any]:
        with pytest.raises(DataError) as error:
            read_splits(options, path, None, task, 0)
        return list(error.value.problems)

    expected = told()
    files()
    assert told() == expected
