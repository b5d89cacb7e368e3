"""Tokens are found again exactly as long as nothing that made them has changed; half entries never."""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from launcher.data.cache import KEPT, Cache
from launcher.data.cache_entry import Content, Damaged, read_entry, without_rows, write_entry
from launcher.data.cache_files import content_of
from launcher.data.cache_key import KeyParts, settings_part, tokenizer_part
from launcher.data.cache_lock import is_held, locked
from launcher.data.cache_place import cache_root
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.place import source_files, source_root
from launcher.data.split import Splits
from launcher.data.tokens import tokenise
from launcher.errors import DataError, Problem

PARTS = KeyParts(data="d", tokenizer="t", settings="s", model="", code="c", place="/a.csv")


def content_of_rows(tokenizer, texts: list[str]) -> Content:
    lines = list(range(len(texts)))
    labels = np.arange(len(texts), dtype=np.int64) % 2
    rows = Examples(
        layout="text_label", texts={"text": texts}, labels=labels, lines=lines, path=Path("/a.csv")
    )
    splits = Splits(
        train=rows, evaluation=None, layout="text_label", label_names=("no", "yes"), notices=("read",)
    )
    options = DataOptions(train_file="x", max_length=6, overflow="windows")
    store = tokenise(rows, tokenizer, options=options, task="classification")
    return Content(splits=without_rows(splits), train=store, evaluation=None)


@pytest.fixture
def content(word_tokenizer) -> Content:
    return content_of_rows(word_tokenizer, ["the cat sat on the mat", "good", "a dog"])


def test_an_entry_gives_back_what_was_written_without_copying_it(content: Content, tmp_path: Path) -> None:
    write_entry(tmp_path, PARTS, content)
    found = read_entry(tmp_path, PARTS, verify=True)
    assert found is not None
    for name in ("input_ids", "offsets", "labels", "num_targets", "sources"):
        ours, kept = getattr(content.train, name), getattr(found.train, name)
        assert ours.dtype == kept.dtype and np.array_equal(ours, kept)
        assert not kept.flags.owndata and not kept.flags.writeable
    assert found.train.trained is None and found.evaluation is None
    assert (found.train.max_length, found.train.notices) == (content.train.max_length, content.train.notices)
    assert (found.splits.label_names, found.splits.notices) == (("no", "yes"), ("read",))


def test_made_once_then_found(content: Content, tmp_path: Path) -> None:
    cache, made = Cache(tmp_path), []

    def make() -> Content:
        made.append(1)
        return content

    first, second = (cache.get(PARTS, make, print) for _ in range(2))
    assert len(made) == 1
    assert "tokens made, this data was not prepared before" in first.said and "rows/s" in first.said
    assert f"in {tmp_path}" in second.said and second.said.startswith("tokens from the cache (")


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ("data", "the data changed"),
        ("tokenizer", "the tokenizer changed"),
        ("settings", "the settings changed"),
        ("code", "the program changed"),
        ("model", "the model changed"),
    ],
)
def test_b041_each_changed_part_misses_and_is_named(
    part: str, word: str, content: Content, tmp_path: Path
) -> None:
    cache = Cache(tmp_path)
    cache.get(PARTS, lambda: content, print)
    changed = replace(PARTS, **{part: "other"})
    assert changed.key != PARTS.key
    assert f"tokens made, {word} (" in cache.get(changed, lambda: content, print).said


def test_b041_every_option_that_decides_about_tokens_changes_the_key() -> None:
    options = DataOptions(train_file="data/a.csv")
    base = settings_part(options, task="classification", seed=1, limit=512)
    changes = {
        "max_length": 100,
        "overflow": "keep_tail",
        "context": {"turns": 3},
        "template": "plain",
        "labels": ("a", "b"),
        "fill": {"name": "Ada"},
        "packing": True,
        "max_train_rows": 3,
        "eval_fraction": 0.5,
        "repair_c1": False,
        "columns": {"text": "t"},
    }
    keys = [
        settings_part(
            DataOptions(train_file="data/a.csv", **{name: value}), task="classification", seed=1, limit=512
        )
        for name, value in changes.items()
    ]
    keys.append(settings_part(options, task="causal_lm", seed=1, limit=512))
    keys.append(settings_part(options, task="classification", seed=2, limit=512))
    keys.append(settings_part(options, task="classification", seed=1, limit=256))
    keys.append(settings_part(options, task="classification", seed=1, limit=512, token_types=True))
    assert len({base, *keys}) == len(keys) + 1
    same = DataOptions(train_file="other/a.csv", dataloader_num_workers=3, micro_batch_tokens=9)
    assert settings_part(same, task="classification", seed=1, limit=512) == base


def test_b041_what_a_call_leaves_in_the_tokenizer_does_not_change_the_key(
    word_tokenizer, plain_tokenizer
) -> None:
    before = tokenizer_part(word_tokenizer)
    word_tokenizer(["the cat"], truncation=True, max_length=3, padding="max_length")
    left = word_tokenizer.backend_tokenizer.truncation
    assert tokenizer_part(word_tokenizer) == before
    assert word_tokenizer.backend_tokenizer.truncation == left is not None
    word_tokenizer.backend_tokenizer.no_truncation()
    word_tokenizer.backend_tokenizer.no_padding()
    assert tokenizer_part(plain_tokenizer) != before


def test_b041_another_chat_template_is_another_tokenizer(chat_tokenizer) -> None:
    before, template = tokenizer_part(chat_tokenizer), chat_tokenizer.chat_template
    chat_tokenizer.chat_template = template + " "
    assert tokenizer_part(chat_tokenizer) != before
    chat_tokenizer.chat_template = template


def old(path: Path, text: str) -> Path:
    """A file that was written a minute ago."""
    path.write_text(text)
    os.utime(path, ns=(time.time_ns() - 60 * 10**9,) * 2)
    return path


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    file = old(tmp_path / "a.csv", "one")
    before = content_of([file], tmp_path / "notes", verify=False)
    note = next((tmp_path / "notes").iterdir())
    note.write_text(note.read_text().replace(json.loads(note.read_text())["sha256"], "noted"))
    assert content_of([file], tmp_path / "notes", verify=False) != before  # the note was believed
    assert content_of([file], tmp_path / "notes", verify=True) == before


@pytest.mark.parametrize("change", ["size", "mtime", "inode"])
def test_any_difference_reads_the_file_again(change: str, tmp_path: Path) -> None:
    file = old(tmp_path / "a.csv", "one")
    stamp, before = file.stat(), content_of([file], tmp_path / "notes", verify=False)
    if change == "size":
        file.write_text("four")
    elif change == "mtime":
        file.write_text("two")
    else:
        other = old(tmp_path / "b.csv", "two")
        other.replace(file)
    if change != "mtime":
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert content_of([file], tmp_path / "notes", verify=False) != before


def folder_of(root: Path, files: dict[str, str]) -> Path:
    """A folder with those files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        old(root / name, text)
    return root


def key_of(path: Path, notes: Path) -> str:
    return content_of(source_files(path), notes, verify=False, root=source_root(path))


def test_b041_folders_are_told_apart_by_what_is_in_them_and_moved_ones_are_the_same(tmp_path: Path) -> None:
    files = {"pos/one.txt": "good", "neg/one.txt": "bad"}
    notes, first = tmp_path / "notes", folder_of(tmp_path / "a" / "set", files)
    before = key_of(first, notes)
    assert key_of(folder_of(tmp_path / "b" / "set", files), notes) == before
    others = [{"pos/one.txt": "good", "neg/one.txt": "BAD"}, {"pos/one.txt": "bad", "neg/one.txt": "good"}]
    others += [{"pos/one.txt": "good", "new/one.txt": "bad"}, files | {"neg/two.txt": "bad"}]
    keys = [key_of(folder_of(tmp_path / str(number), each), notes) for number, each in enumerate(others)]
    assert len({before, *keys}) == 1 + len(keys)
    moved = first.rename(tmp_path / "moved")
    assert key_of(moved, notes) == key_of(moved / "*" / "*.txt", notes) == before


def test_b041_a_folders_own_name_counts_where_it_is_the_label() -> None:
    def key(file: str, **columns: str) -> str:
        options = DataOptions(train_file=file, columns=columns)
        return settings_part(options, task="classification", seed=1, limit=512)

    assert key("pos/a.txt") == key("neg/a.txt")
    assert key("pos/a.txt", label="@folder") != key("neg/a.txt", label="@folder")
    assert key("pos/*.txt", label="@folder") != key("neg/*.txt", label="@folder")


def wait_for_another_time(file: Path) -> None:
    """Until the file system's clock, which may tick every few milliseconds only, has moved on."""
    probe = file.with_name("probe")
    while not (probe.write_text(""), probe.stat().st_ctime_ns > file.stat().st_ctime_ns)[1]:
        time.sleep(0.001)


def test_a_changed_file_whose_times_were_set_back_is_read_again(tmp_path: Path) -> None:
    file = old(tmp_path / "a.csv", "one")
    stamp, before = file.stat(), content_of([file], tmp_path / "notes", verify=False)
    wait_for_another_time(file)
    file.write_text("two")
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert content_of([file], tmp_path / "notes", verify=False) != before


def test_a_file_changed_a_moment_ago_is_not_noted(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("one")
    os.utime(file, ns=(time.time_ns() + 3600 * 10**9,) * 2)  # young, however late it is looked at
    content_of([file], tmp_path / "notes", verify=False)
    assert not (tmp_path / "notes").exists()


@pytest.mark.parametrize("how", ["cut", "gone", "other bytes", "no entry.json"])
def test_a_damaged_entry_is_made_again(how: str, content: Content, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.get(PARTS, lambda: content, print)
    file = tmp_path / "tokens" / PARTS.key / "train.input_ids.npy"
    data = file.read_bytes()
    if how == "cut":
        file.write_bytes(data[:-4])
    elif how == "gone":
        file.unlink()
    elif how == "other bytes":
        file.write_bytes(data[:-4] + b"\1\1\1\1")
    else:
        file.with_name("entry.json").unlink()
    found = cache.get(PARTS, lambda: content, print, verify=how == "other bytes")
    assert "the kept ones are damaged" in found.said
    assert np.array_equal(found.content.train.input_ids, content.train.input_ids)


def test_other_parts_under_the_same_name_are_not_opened(content: Content, tmp_path: Path) -> None:
    write_entry(tmp_path, PARTS, content)
    with pytest.raises(Damaged, match="something else"):
        read_entry(tmp_path, replace(PARTS, tokenizer="other"), verify=False)


def test_the_oldest_entries_go(content: Content, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number in range(KEPT + 3):
        cache.get(replace(PARTS, data=str(number)), lambda: content, print)
    entries = [path for path in (tmp_path / "tokens").iterdir() if path.is_dir()]
    assert len(entries) == KEPT
    last = replace(PARTS, data=str(KEPT + 2))
    assert (tmp_path / "tokens" / last.key).is_dir()


def test_where_nothing_can_be_kept_the_tokens_are_made_all_the_same(content: Content, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    found = Cache(blocked).get(PARTS, lambda: content, print)
    assert found.content is content
    assert "tokens are not kept" in found.said and "LAUNCHER_CACHE=FOLDER" in found.said


def test_a_lock_left_by_a_dead_process_holds_nobody_up(tmp_path: Path) -> None:
    lock = tmp_path / "key.lock"
    program = f"""
import os, pathlib
from launcher.data.cache_lock import locked
with locked(pathlib.Path({str(lock)!r}), print):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9 and "process" in lock.read_text()
    assert not is_held(lock)
    with locked(lock, print):
        assert is_held(lock)
    assert not is_held(lock)


def test_what_a_killed_process_left_half_written_is_never_opened(content: Content, tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    half = tmp_path / "tokens" / f"{PARTS.key}.making-{socket.gethostname()}-{dead.pid}"
    half.mkdir(parents=True)
    (half / "train.input_ids.npy").write_bytes(b"half")
    found = Cache(tmp_path).get(PARTS, lambda: content, print)
    assert "was not prepared before" in found.said
    assert not half.exists()


def test_a_mistake_leaves_no_entry_and_reaches_those_who_wait(content: Content, tmp_path: Path) -> None:
    cache, began = Cache(tmp_path), time.time() - 5
    problem = Problem(where="a.csv:3", what="bad", right="good", type="data.x=1")

    def fail() -> Content:
        # Another process of the same run has begun to wait for this one by now.
        with pytest.raises(DataError, match="a.csv:3  bad"):
            cache._raise_what_another_raised(PARTS, began)
        raise DataError(problem)

    (tmp_path / "tokens").mkdir()
    failed = tmp_path / "tokens" / f"{PARTS.key}.failed"
    failed.write_text(json.dumps({"kind": "DataError", "problems": [vars(problem)]}))
    with pytest.raises(DataError, match="bad"):
        cache.get(PARTS, fail, print)
    assert not (tmp_path / "tokens" / PARTS.key).exists()
    os.utime(failed, (1, 1))  # an old run's mistake is nobody's now
    assert cache.get(PARTS, lambda: content, print).content.train.task == "classification"


@pytest.mark.slow
def test_b041_two_processes_at_once_make_it_once(tmp_path: Path) -> None:
    program = f"""
import pathlib, sys, time
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import numpy as np
from launcher.data.cache import Cache
from launcher.data.cache_entry import Content
from launcher.data.cache_key import KeyParts
from launcher.data.examples import Examples
from launcher.data.split import Splits
from launcher.data.tokens import TokenStore
def make():
    with open({str(tmp_path / "made")!r}, "a") as file: file.write("x")
    time.sleep(2)
    rows = Examples(layout="l", texts={{}}, labels=None, lines=[], path=pathlib.Path("a"))
    one = np.ones(1, dtype=np.int64)
    store = TokenStore(task="classification", input_ids=one.astype(np.int32), offsets=np.array([0, 1]),
        labels=one, trained=None, num_targets=one, max_length=4)
    splits = Splits(train=rows, evaluation=None, layout="l", label_names=(), notices=())
    return Content(splits=splits, train=store, evaluation=None)
parts = KeyParts(data="d", tokenizer="t", settings="s", model="", code="c", place="p")
found = Cache(pathlib.Path({str(tmp_path / "cache")!r})).get(parts, make, print)
print(found.said, len(found.content.train))
"""
    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [each.communicate(timeout=600)[0] for each in both]
    assert (tmp_path / "made").read_text() == "x"
    assert sorted("from the cache" in each for each in said) == [False, True]


def test_place_is_the_users_variable_or_below_the_usual_cache(tmp_path: Path) -> None:
    assert cache_root({"LAUNCHER_CACHE": str(tmp_path)}) == tmp_path
    assert cache_root({"XDG_CACHE_HOME": "/data/cache"}) == Path("/data/cache/finetune-launcher")
    assert cache_root({}) == Path.home() / ".cache" / "finetune-launcher"
