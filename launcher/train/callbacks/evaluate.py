"""Evaluation: every row exactly once on any number of ranks, numbers reduced batch by batch."""

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from launcher import heartbeat
from launcher.backends.options import BACKENDS
from launcher.data.batches_torch import Batch, eval_batches
from launcher.data.tokens import TokenStore
from launcher.errors import Problem, TrainError
from launcher.metrics.classification import scores
from launcher.metrics.confusion import confusions
from launcher.metrics.label_sets import set_scores
from launcher.metrics.language import perplexity
from launcher.metrics.regression import regression_scores
from launcher.metrics.windows import mean_of_windows, summed_loss
from launcher.train.callbacks.callback import Callback, interval_due
from launcher.train.job import Job
from launcher.train.retry import in_pieces

SMALLER_IS_BETTER = ("loss", "perplexity", "mse")


Classes = Callable[[Any, Any], None]


def evaluate(job: Job, store: TokenStore, *, classes: Classes | None = None) -> dict[str, float]:
    """Metrics over all rows of `store`, the same on every rank.

    `classes` is told predicted and true class of every row, where the labels are classes.
    Raises TrainError where the rows counted are not the rows there are: the metric would be wrong.
    """
    gathered = job.world.gather(_run(job, store))
    return measured(gathered, store, len(job.label_names), classes=classes)


def measured(
    gathered: Sequence[tuple[float, Any, Any]],
    store: TokenStore,
    num_labels: int,
    *,
    classes: Classes | None = None,
) -> dict[str, float]:
    """Metrics of (summed loss, row ids, logits) of every rank. Raises TrainError as `evaluate` does."""
    seen = np.concatenate([part[1] for part in gathered])
    if len(np.unique(seen)) != len(store) or len(seen) != len(store):
        raise TrainError(_miscounted(len(seen), len(store)))
    total = sum(part[0] for part in gathered)
    num_targets = int(store.num_targets.sum())
    found = {"loss": total / max(1, num_targets)}
    if store.task == "causal_lm":
        return found | {"perplexity": perplexity(total, num_targets)}
    assert store.labels is not None
    logits = np.concatenate([part[2] for part in gathered])
    labels = store.labels[seen]
    if store.sources is not None:
        found["loss"], logits, labels = _by_row(logits, labels, store.sources[seen])
    if classes is not None and labels.dtype == np.int64:
        classes(logits.argmax(-1), labels)
    return found | label_scores(logits, labels, num_labels)


def label_scores(logits: Any, labels: Any, num_labels: int) -> dict[str, float]:
    """The metrics of what the labels are: classes (int64), sets of them (float, 2-d), or numbers (float)."""
    if labels.dtype == np.int64:
        return scores(logits.argmax(-1), labels, num_labels)
    return set_scores(logits, labels) if labels.ndim == 2 else regression_scores(logits[:, 0], labels)


def _by_row(logits: Any, labels: Any, sources: Any) -> tuple[float, Any, Any]:
    """Mean loss, logits and labels of the rows that the windows were cut from."""
    means = mean_of_windows(logits, sources)
    of_row = np.zeros((len(means), *labels.shape[1:]), dtype=labels.dtype)
    of_row[sources] = labels
    return summed_loss(means, of_row) / len(means), means, of_row


def _run(job: Job, store: TokenStore) -> tuple[float, Any, Any]:
    options = job.recipe.training
    asked = options.per_device_eval_batch_size
    size = job.plan.step.micro_batch_size if asked == "auto" else asked
    # A backend whose ranks gather weights for one another goes through the batch in step with them.
    divided = BACKENDS.get(job.plan.backend).sharding.parameters
    return run_rows(
        job.strategy.module,
        store,
        size,
        device=job.world.device,
        pad_token_id=job.tokenizer.pad_token_id,
        num_labels=len(job.label_names),
        rank=job.world.rank,
        num_ranks=job.world.num_ranks,
        in_step=divided,
    )


def run_rows(
    module: torch.nn.Module,
    store: TokenStore,
    size: int,
    *,
    device: torch.device,
    pad_token_id: int,
    num_labels: int,
    rank: int = 0,
    num_ranks: int = 1,
    in_step: bool = False,
) -> tuple[float, Any, Any]:
    """(summed loss, row ids, logits) of this rank's rows, `size` at once.

    `in_step`: batches are never divided, because other ranks go through the same ones.
    """
    total = torch.zeros((), dtype=torch.float64, device=device)
    rows, logits = [], []

    def forward(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        on_device = {key: tensor.to(device, non_blocking=True) for key, tensor in batch.items()}
        loss, found = module(**on_device)
        return loss, found.float()

    module.eval()
    with torch.no_grad():
        for ids, batch in eval_batches(store, size, rank, num_ranks, pad_token_id):
            heartbeat.again()
            parts = [forward(batch)] if in_step else in_pieces(batch, forward, device)
            total += sum(loss for loss, _ in parts)
            rows.append(ids)
            logits.append(torch.cat([found for _, found in parts])[: len(ids)])
    module.train()
    answers = torch.cat(logits).cpu().numpy() if logits else np.zeros((0, num_labels))
    return float(total), np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64), answers


def _miscounted(seen: int, rows: int) -> Problem:
    return Problem(
        what=f"evaluation saw {seen} rows of a set of {rows}: the metric would be wrong",
        right="every row exactly once, on any number of ranks",
        type="report this with the run's plan.json",
    )


def _keep_confusions(job: Job, predictions: Any, labels: Any) -> None:
    """Which class was taken for which at this step, beside the log: too much for a line of it."""
    job.metrics.keep_confusions(
        {
            "step": job.progress.step,
            "labels": list(job.label_names),
            "counts": confusions(predictions, labels),
        }
    )


class Evaluate(Callback):
    """Evaluates at an interval and at the end; remembers the best."""

    phase = "evaluate"

    def __init__(self, every: int | None, metric: str) -> None:
        """`every` in steps; `metric` without `eval_` chooses the best."""
        self.every = every
        self.metric = metric.removeprefix("eval_")
        self.last: dict[str, float] = {}

    def is_due(self, job: Job, step: int) -> bool:
        """At the interval and at the end, where there is something to evaluate on."""
        return job.eval_store is not None and interval_due(self.every, step, job.total_steps, at_end=True)

    def run(self, job: Job) -> None:
        """Evaluate, write, and compare with the best so far."""
        assert job.eval_store is not None
        start = time.perf_counter()
        self.last = evaluate(job, job.eval_store, classes=functools.partial(_keep_confusions, job))
        line: dict[str, Any] = {"step": job.progress.step, "epoch": round(job.progress.epoch, 4)}
        line |= {f"eval_{name}": value for name, value in self.last.items()}
        line["eval_seconds"] = round(time.perf_counter() - start, 3)
        job.metrics.write(line)
        shown = "  ".join(f"{name} {value:.4f}" for name, value in self.last.items())
        job.say(f"evaluation at step {job.progress.step}: {shown}")
        self._compare(job)

    def again(self, job: Job) -> None:
        """Measure other weights than the last step's: nothing is logged as if it were a step's."""
        assert job.eval_store is not None
        self.last = evaluate(job, job.eval_store)

    def _compare(self, job: Job) -> None:
        value = self.last[self.metric]
        if not math.isfinite(value):  # nothing is better than NaN, and nothing would ever be
            job.say(f"evaluation at step {job.progress.step}: {self.metric} is not finite: never the best")
            return
        best = job.progress.best_metric
        better = best is None or (value < best if self.metric in SMALLER_IS_BETTER else value > best)
        if better:
            job.progress.best_metric, job.progress.best_step = value, job.progress.step
