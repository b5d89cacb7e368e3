"""Whether the time model puts published runs into the order in which they really ran.

    python benchmarks/time_model.py CSV [--save] [--rows]

For every source with throughput: Kendall's tau-b between predicted and published tokens (or samples) a
second, over all rows that can be predicted, the reasons of the others, and the tau of always ordering by
size and method, which knows no card, batch or kernel.
"""

import argparse
import csv
import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from paired import save
from row_words import card_named

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launcher.facts import ShardingFacts
from launcher.hardware.catalog import Gpu, get
from launcher.memory.setting import Adapter, Setting
from launcher.models.shape import LinearShape, ModelShape
from launcher.plan.time_model import step_time

# Names that leave a variant open: the one that most published runs had.
CARDS = {
    "A100-80GB": "a100_sxm_80",
    "A100-40GB": "a100_sxm_40",
    "H100-80GB": "h100_sxm",
    "V100-16GB": "v100_16",
}
METHODS = {"full": 0, "LoRA": 1, "GPTQ-LoRA": 2, "QLoRA": 3}
AIM = {"fms-acceleration benchmarks": 0.8}
Row = dict[str, str]


class Unpredictable(Exception):
    """Why a row cannot be predicted."""


@dataclass(frozen=True)
class Run:
    """A published row beside its prediction, both in tokens or samples a second."""

    row: Row
    published: float
    predicted: float

    @property
    def baseline(self) -> float:
        """Smaller first, and among equals the method that trains more weights."""
        return -float(self.row["params_total"]) + METHODS[self.row["method"]] * 1e-3


def main() -> int:
    """Print a line a source; exit code 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", type=Path)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rows", action="store_true", help="every row with its error")
    arguments = parser.parse_args()
    with arguments.csv.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["throughput"]]
    figures, missed = {}, False
    for source in dict.fromkeys(row["source"] for row in rows):
        found, reasons = predicted([row for row in rows if row["source"] == source])
        if len(found) < 10:
            continue
        figures[source] = report(found, reasons)
        missed |= figures[source]["tau"] < AIM.get(source, -1)
        print(f"{source}: {figures[source]}")
        for run in found if arguments.rows else ():
            print(line(run))
    if arguments.save:
        print(f"kept in {save('time_model', figures)}")
    return int(missed)


def predicted(rows: Sequence[Row]) -> tuple[list[Run], Counter[str]]:
    """Every row that can be predicted, and how many not, by reason."""
    runs, reasons = [], Counter[str]()
    for row in rows:
        try:
            runs.append(predict(row))
        except Unpredictable as reason:
            reasons[str(reason)] += 1
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a cell nobody foresaw
            reasons[f"the row cannot be read: {error}"[:120]] += 1
    return runs, reasons


def predict(row: Row) -> Run:
    """Published and predicted speed of one row."""
    setting = setting_of(row)
    found = step_time(setting, card(row))
    unit, published = row["throughput_unit"], float(row["throughput"])
    if unit.startswith("s per optimiser step"):
        return Run(row, 1 / published, 1 / found.seconds)
    if unit.startswith("tokens"):
        return Run(row, published, found.tokens_per_s / (1 if unit == "tokens/s" else setting.num_ranks))
    if unit.startswith("samples"):
        return Run(row, published, found.rows_per_s)
    raise Unpredictable(f"throughput in {unit}")


def card(row: Row) -> Gpu:
    """The card's row of gpus.csv."""
    if row["gpu"] in CARDS:
        return get(CARDS[row["gpu"]])
    known = card_named(row["gpu"])
    if known is None:
        raise Unpredictable(f"card {row['gpu'] or 'not stated'}")
    return known


def number(row: Row, key: str) -> int:
    """A whole number that a setting cannot do without."""
    try:
        return int(float(row[key]))
    except ValueError as error:
        raise Unpredictable(f"{key} not published" if not row[key] else f"{key} is no one number") from error


def shape_of(row: Row) -> ModelShape:
    """The model from the row's own columns."""
    if "moe" in row["arch"].lower() or "mixtral" in row["model_id"].lower():
        raise Unpredictable("mixture of experts")
    hidden, heads, mid = number(row, "hidden"), number(row, "heads"), number(row, "intermediate")
    kv, dim = int(row["kv_heads"] or heads), int(row["head_dim"] or hidden // heads)
    plain = "gelu" in row["arch"].lower()
    sizes = [("q", hidden, heads * dim), ("k", hidden, kv * dim), ("v", hidden, kv * dim)]
    sizes += [("o", heads * dim, hidden), ("up", hidden, mid), ("down", mid, hidden)]
    sizes += [] if plain else [("gate", hidden, mid)]
    linears = tuple(
        LinearShape(
            name=name,
            in_features=into,
            out_features=out,
            bias=False,
            kind="mlp" if name in ("up", "down", "gate") else "attention",
        )
        for name, into, out in sizes
    )
    vocab, tied = number(row, "vocab"), row["tied"] == "yes"
    return ModelShape(
        model_type=row["model_id"],
        task="causal_lm",
        is_decoder=True,
        num_layers=number(row, "layers"),
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv,
        head_dim=dim,
        intermediate_size=mid,
        vocab_size=vocab,
        max_positions=None,
        tied=tied,
        gated_mlp=not plain,
        activation="gelu_pytorch_tanh" if plain else "silu",
        norm="layer" if plain else "rms",
        positions="learned" if plain else "rope",
        linears=linears,
        block_other_params=2 * hidden,
        word_embedding_params=vocab * hidden,
        other_embedding_params=0,
        final_norm_params=hidden,
        head_params=0 if tied else vocab * hidden,
        hidden_dropout=0.1 if plain else 0.0,
    )


def adapter_of(row: Row, shape: ModelShape) -> Adapter | None:
    """LoRA pairs by their published targets; None for full fine-tuning."""
    if row["method"] == "full":
        return None
    if row["method"] not in METHODS:
        raise Unpredictable(f"method {row['method'].split()[0]} of a comparison with its own data")
    attention = tuple(each.name for each in shape.linears if each.kind == "attention")
    text = row["lora_targets"]
    names = [word for word in re.split(r"[ ,]+", text) if word in attention] or attention[:3]
    targets = tuple(each.name for each in shape.linears) if text == "all linear" else tuple(names)
    return Adapter(
        method="lora",
        num_params=int(float(row["trainable_params"] or 0)) or 10_000_000,
        rank=int(row["lora_r"] or 8),
        targets=targets,
    )


def setting_of(row: Row) -> Setting:
    """The row as the time model sees it. Raises Unpredictable with the reason."""
    shape = shape_of(row)
    adapter = adapter_of(row, shape)
    seq_len, mean_rows = number(row, "seq_len"), row["throughput_unit"].startswith("samples")
    pure, weights = row["mp_scheme"].startswith("none"), row["weights_dtype"][:8].strip(" ;")
    weights = {"bf16": "bfloat16", "fp16": "float16", "fp16/bf1": "bfloat16"}.get(weights, weights)
    fsdp, packed = row["backend"].startswith("FSDP"), row["weight_quant"]
    if not fsdp and number(row, "n_gpus") > 1 and row["backend"] != "DDP":
        raise Unpredictable(f"backend {row['backend'].split()[0]}")
    loss = row["loss_impl"]
    return Setting(
        shape=shape,
        method="full" if adapter is None else "lora",
        adapter=adapter,
        micro_batch=number(row, "micro_batch"),
        seq_len=round(mean_length(seq_len)) if mean_rows else seq_len,
        weights_dtype=weights,  # type: ignore[arg-type]
        trainable_dtype=weights if adapter is None and (pure or not fsdp) else "float32",  # type: ignore[arg-type]
        precision="bf16" if "bf" in weights else "fp16",
        pure=pure,
        quantisation="none" if not packed else "gptq4" if "gptq" in packed.lower() else "nf4",
        # those kernels replace modules of the llama family only
        fused_norm="fused RMSNorm" in row["notes"] and shape.norm == "rms",
        kbit_upcast="kbit preparation upcasts" in row["notes"],
        optimizer="adamw_foreach",
        checkpointing="full" if row["grad_ckpt"] == "yes" else "none",
        attention="flash",
        loss="linear_fused" if "Liger" in loss else "fused" if "Triton" in loss else "plain",
        backend="fsdp" if fsdp else "single_gpu",
        sharding_kind="fsdp1" if fsdp else "none",
        sharding=ShardingFacts(optimizer_states=fsdp, gradients=fsdp, parameters=fsdp),
        num_ranks=number(row, "n_gpus"),
        accumulation_steps=int(row["grad_accum"] or 1),
    )


def mean_length(limit: int, untruncated: float = 3234.0) -> float:
    """Mean of an exponential length distribution of that mean, cut at `limit` tokens."""
    return untruncated * (1 - math.exp(-limit / untruncated))


def tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-b."""
    agree, ties = 0, [0, 0]
    for one, two in combinations(range(len(first)), 2):
        signs = [(values[one] > values[two]) - (values[one] < values[two]) for values in (first, second)]
        agree += signs[0] * signs[1]
        ties = [count + (sign == 0) for count, sign in zip(ties, signs, strict=True)]
    pairs = len(first) * (len(first) - 1) / 2
    return agree / math.sqrt((pairs - ties[0]) * (pairs - ties[1]))


def report(runs: Sequence[Run], reasons: Counter[str]) -> dict[str, object]:
    """The figures of one source."""
    published, ours = [run.published for run in runs], [run.predicted for run in runs]
    errors = [run.predicted / run.published - 1 for run in runs]
    pairs = by_pair(runs)
    return {
        "rows": len(runs),
        "tau_of_pairs": round(tau(*zip(*pairs, strict=True)), 3),
        "num_pairs": len(pairs),
        "tau": round(tau(published, ours), 3),
        "tau_by_size_and_method": round(tau(published, [run.baseline for run in runs]), 3),
        "median_signed_error": round(statistics.median(errors), 3),
        "median_error": round(statistics.median(map(abs, errors)), 3),
        "p90_error": round(statistics.quantiles(map(abs, errors), n=10)[-1], 3),
        "not_predicted": dict(reasons),
    }


def by_pair(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Median published and predicted speed of each model, method, backend and number of cards."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        key = tuple(run.row[name] for name in ("model_id", "method", "backend", "n_gpus"))
        groups.setdefault(key, []).append(run)
    return [
        (statistics.median(run.published for run in group), statistics.median(run.predicted for run in group))
        for group in groups.values()
    ]


def line(run: Run) -> str:
    """One row for a person."""
    row, error = run.row, run.predicted / run.published - 1
    names = ("model_id", "method", "n_gpus", "micro_batch", "seq_len", "loss_impl", "notes")
    facts = "  ".join(row[name][:24] for name in names)
    return f"{error:+7.1%} {run.published:9.2f} {run.predicted:9.2f}  {row['backend'][:5]}  {facts}"


if __name__ == "__main__":
    sys.exit(main())
