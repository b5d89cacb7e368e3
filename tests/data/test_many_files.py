"""Folders and patterns of files, compressed files, parquet, saved data sets, hub ids."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.data.options import DataOptions
from launcher.data.place import files_in, hub_name, kind_of, source_files
from launcher.data.read import read_rows
from launcher.data.reading import Reading
from launcher.data.split import read_splits
from launcher.errors import DataError

ROWS = [{"text": "good", "label": "pos"}, {"text": "bad", "label": "neg"}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def test_files_of_a_folder_are_one_table_in_the_order_of_their_names(write, tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in (("b.csv", "2"), ("a.csv", "1"), ("sub/c.csv", "3")):
        write(name, f"text,label\n{text},x\n")
    write(".hidden.csv", "text,label\nno,x\n")
    write("notes.md", "no data")
    table = read_rows(tmp_path)
    assert [row["text"] for row in table.rows] == ["1", "2", "3"]
    assert table.where(2) == f"{tmp_path}/sub/c.csv:2"
    assert "3 files: a.csv, b.csv, sub/c.csv" in table.notices[0]


def test_pattern_takes_what_it_finds_and_an_empty_one_is_refused(write, tmp_path):
    write("a1.csv", "text,label\n1,x\n")
    write("b1.csv", "text,label\n2,x\n")
    assert [row["text"] for row in read_rows(tmp_path / "a*.csv").rows] == ["1"]
    with pytest.raises(DataError, match="the pattern finds no file"):
        read_rows(tmp_path / "c*.csv")
    with pytest.raises(DataError, match="the folder holds no data file"):
        read_rows(_empty(tmp_path))


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_problems_name_the_file_and_all_files_are_looked_at(write, tmp_path):
    write("a.csv", "text,label\n1,x\n")
    write("b.csv", "text,label\n1,x,y\n")
    write("c.csv", "text,kind\n1,x\n")
    with pytest.raises(DataError) as error:
        read_rows(tmp_path)
    told = str(error.value)
    assert f"{tmp_path}/b.csv:2  3 fields" in told
    assert f"{tmp_path}/c.csv  it has no column label" in told


def test_label_may_be_the_files_name_or_its_folders(write, tmp_path):
    for folder in ("pos", "neg"):
        (tmp_path / folder).mkdir()
        write(f"{folder}/one.txt", f"{folder} text\nmore\n")
    options = DataOptions(train_file="x", columns={"label": "@folder"})
    splits = read_splits(options, tmp_path, None, "classification", 0)
    assert splits.label_names == ("neg", "pos") and splits.train.labels.tolist() == [0, 0, 1, 1]
    options = DataOptions(train_file="x", columns={"label": "@file"})
    with pytest.raises(DataError, match="1 different label "):
        read_splits(options, tmp_path, None, "classification", 0)


def test_documents_end_where_files_end(write, tmp_path):
    write("a.txt", "one\n\ntwo\n")
    write("b.txt", "three\n")
    splits = read_splits(DataOptions(train_file="x"), tmp_path, None, "causal_lm", 0)
    assert splits.train.texts["text"] == ["one", "two", "three"]
    assert splits.train.where(2) == f"{tmp_path}/b.txt:1"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files_are_read_by_the_name_inside(write, suffix):
    path = write(f"a.jsonl{suffix}", _packed(LINES.encode(), suffix))
    assert read_rows(path).rows == ROWS


def _packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data[:20]) + gzip.compress(data[20:])
    zstandard = pytest.importorskip("zstandard", reason="the package zstandard packs the file")
    packer = zstandard.ZstdCompressor()
    return packer.compress(data[:20]) + packer.compress(data[20:])


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files_that_were_cut_short_or_are_none_are_told(write, suffix):
    packed = _packed(LINES.encode(), suffix)
    with pytest.raises(DataError, match="damaged or was cut short"):
        read_rows(write(f"a.csv{suffix}", packed[:-7]))
    with pytest.raises(DataError, match=r"but this is no \w+ file"):
        read_rows(write(f"b.csv{suffix}", b"text,label\na,b\n"))


def test_zstd_without_anything_to_unpack_it_names_the_line_to_type(root, write):
    path = write("a.csv.zst", _packed(b"text,label\na,b\n", ".zst"))
    code = (
        "import sys; sys.modules['zstandard'] = sys.modules['compression.zstd'] = None\n"
        "from pathlib import Path; from launcher.data.read import read_rows\n"
        f"read_rows(Path({str(path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert "pip install zstandard" in done.stderr and "DataError" in done.stderr


def test_parquet_is_read_with_its_types_and_record_numbers(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow writes the file")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    columns = {"text": ["good", None, "bad"], "label": [1, 0, 1], "messages": [[{"role": "user"}], [], None]}
    parquet.write_table(pyarrow.table(columns), path)
    table = read_rows(path)
    assert table.columns == ("text", "label", "messages")
    assert table.rows[0] == {"text": "good", "label": 1, "messages": [{"role": "user"}]}
    assert table.where(1) == f"{path}#2"
    with pytest.raises(DataError, match="no whole parquet file"):
        read_rows(_copy(path, path.with_name("b.parquet")))
    with pytest.raises(DataError, match="no such file"):
        read_rows(tmp_path / "none.parquet")


def _copy(source: Path, target: Path) -> Path:
    target.write_bytes(source.read_bytes()[:-20])
    return target


def test_parquet_without_pyarrow_names_the_line_to_type(root, write):
    path = write("a.parquet", b"PAR1")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path; from launcher.data.read import read_rows\n"
        f"read_rows(Path({str(path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert "pip install pyarrow" in done.stderr and "DataError" in done.stderr


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved data set with classes by id, and two splits."""
    datasets = pytest.importorskip("datasets", reason="datasets saves the folder")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])}
    )
    rows = {"text": ["good", "bad", "fine"], "label": [1, 0, 1]}
    whole = datasets.Dataset.from_dict(rows, features=features)
    datasets.DatasetDict({"train": whole, "test": whole.select([1, 2])}).save_to_disk(str(tmp_path / "set"))
    return tmp_path / "set"


def test_saved_data_set_is_read_by_split_with_its_class_names(saved):
    options = DataOptions(train_file=str(saved), eval_split="test", max_leaked_fraction=1.0)
    splits = read_splits(options, saved, None, "classification", 0)
    assert splits.train.texts["text"] == ["good", "bad", "fine"] and splits.label_names == ("neg", "pos")
    assert splits.train.labels.tolist() == [1, 0, 1]
    assert splits.evaluation.texts["text"] == ["bad", "fine"]
    with pytest.raises(DataError, match="no split 'tests'") as error:
        read_rows(saved, Reading(split="tests"))
    assert error.value.problems[0].type == "data.train_split=test"


def test_saved_data_set_that_is_damaged_is_told(saved):
    for file in saved.rglob("*.arrow"):
        file.write_bytes(b"x")
    with pytest.raises(DataError, match="does not load"):
        read_rows(saved, Reading(split="train"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hf://owner/name", "hub"),
        ("hf://owner/name@main", "hub"),
        ("owner/name", "hub"),
        ("data/train.csv", "file"),
        ("a/b/c", "file"),
        ("train", "file"),
        ("data/*.csv", "many"),
    ],
)
def test_what_a_name_means(text, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert kind_of(Path(text)) == kind


def test_hub_ids_have_a_revision_and_no_files():
    assert hub_name(Path("hf://owner/name@v1.0")) == ("owner/name", "v1.0")
    assert hub_name(Path("owner/name")) == ("owner/name", None)
    assert source_files(Path("hf://owner/name")) == []


def test_source_files_are_those_that_are_read(write, tmp_path):
    path = write("a.csv", "x")
    assert source_files(path) == source_files(tmp_path) == source_files(tmp_path / "*.csv") == [path]
    assert source_files(tmp_path / "none.csv") == []
    assert files_in(tmp_path / "a**") in ([], [path])  # Python before 3.13 takes no such pattern


def test_hub_that_cannot_be_reached_is_told_with_the_way_out(root, tmp_path):
    pytest.importorskip("datasets", reason="datasets asks the hub")
    code = (
        "from pathlib import Path; from launcher.data.read import read_rows\n"
        "from launcher.errors import DataError\n"
        "try: read_rows(Path('hf://nobody/nothing-of-this-name'))\n"
        "except DataError as error: print(error)"
    )
    import os

    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False, env=environment
    )
    assert "as a hub data set it cannot be had" in done.stdout, done.stderr[-2000:]
    assert "HF_ENDPOINT=MIRROR" in done.stdout
