"""Whatever bytes a data file holds: rows, or a problem for a person; never a traceback, never for ever."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import DataError, LauncherError

CSV = 'text,label\n"It’s “good”, \nreally",1\nplain,0\n"say ""hi""",1\n\nlast,0\n'.encode()
TSV = b'id\ttext\tlabel\n1\tgood\tpos\n2\t"bad\tneg\n'
LINES = b'{"text": "a\\u2019b", "label": 1}\n{"text": "c", "label": "0"}\n{"text": null, "label": 1}\n'
ARRAY = (
    b'[{"instruction": "a", "input": "", "output": "b"}, {"instruction": "c", "input": null, "output": "d"}]'
)
TALK = json.dumps(
    [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": "[]"}]
    * 3
).encode()
SHARED = json.dumps(
    [{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]
).encode()
DIALOGUE = (
    b"Utterance,Speaker,Emotion,Dialogue_ID,Utterance_ID\nhi,['Al'],joy,0,0\nyo,Bo,fear,0,2\nhm,Al,joy,1,0\n"
)
SEEDS = [
    ("a.csv", CSV, "classification"),
    ("a.tsv", TSV, "classification"),
    ("a.jsonl", LINES, "classification"),
    ("a.json", ARRAY, "causal_lm"),
    ("b.json", TALK, "causal_lm"),
    ("c.json", SHARED, "causal_lm"),
    ("b.csv", DIALOGUE, "classification"),
    ("a.txt", b"one\ntwo\n\nthree\n", "causal_lm"),
]
PIECES = st.one_of(
    st.binary(min_size=1, max_size=6),
    st.sampled_from([b'"', b",", b"\n", b"\r", b"\0", b"[", b"]", b"{", b"}", b"\\", b"NaN", b"\\ud800"]),
    st.sampled_from(
        ["’".encode("cp1252"), "中文".encode("gb18030"), "\x85".encode(), b"\xff\xfe", b"\x1f\x8b"]
    ),
    st.sampled_from(
        [b"[" * 2000, b'{"a":' * 500, b"9" * 5000, b"1e999", b"\xef\xbb\xbf", b"&#0;", b"\t" * 5]
    ),
)
Change = tuple[str, float, bytes]
CHANGES = st.lists(st.tuples(st.sampled_from(["put", "cut", "swap"]), st.floats(0, 1), PIECES), max_size=5)


def changed(data: bytes, changes: list[Change]) -> bytes:
    for kind, share, piece in changes:
        place = int(share * len(data))
        if kind == "put":
            data = data[:place] + piece + data[place:]
        elif kind == "swap":
            data = data[:place] + piece + data[place + len(piece) :]
        else:
            data = data[:place]
    return data


def read(name: str, data: bytes, task: str, **options: Any) -> None:
    """Rows or a LauncherError whose every problem says what is wrong and what to type."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            splits = read_splits(DataOptions(train_file="x", **options), path, None, task, 0)
        except LauncherError as error:
            assert error.problems and all(each.what and each.right and each.type for each in error.problems)
            assert len(error.problems) <= 21
        else:
            assert len(splits.train) > 0


@pytest.mark.parametrize(("name", "data", "task"), SEEDS, ids=[f"{name}-{task}" for name, _, task in SEEDS])
@given(changes=CHANGES)
@settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_changed_bytes_are_rows_or_a_problem(
    name: str, data: bytes, task: str, changes: list[Change]
) -> None:
    read(name, changed(data, changes), task)


@given(data=st.binary(max_size=300))
@settings(max_examples=40, deadline=None, derandomize=True)
@pytest.mark.parametrize(
    "name", ["a.csv", "a.json", "a.tsv", "a.txt", "a.csv.gz", "a.jsonl.zst", "a.parquet"]
)
def test_any_bytes_are_rows_or_a_problem(name: str, data: bytes) -> None:
    read(name, data, "classification")


@given(
    changes=CHANGES,
    html=st.sampled_from(["keep", "clean"]),
    policy=st.sampled_from(["drop", "keep", "error"]),
)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_changed_bytes_under_other_policies(changes: list[Change], html: str, policy: str) -> None:
    options = {"html": html, "empty_text": policy, "drop_duplicates": True, "repair_c1": False}
    read("a.csv", changed(CSV, changes), "classification", class_weights="balanced", **options)
    read("r.csv", changed(CSV, changes), "classification", layout="regression", **options)
    read("m.csv", changed(CSV, changes), "classification", layout="multi_label", **options)


def test_deep_nesting_is_a_problem_not_a_recursion(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"text": ' + "[" * 200_000, encoding="utf-8")
    with pytest.raises(DataError, match="record 1 is not JSON"):
        read_splits(DataOptions(train_file="x"), path, None, "classification", 0)
