"""A step of the product against a hand-written loop on the same engine, in the same two processes.

A LLaMA-like model trains on two gloo processes, one thread each, fp32. One pair of processes holds both:
the product's whole loop with its callbacks, and a loop as a competent person writes it around
`deepspeed.initialize` or `fully_shard`: DataLoader, padding, tokens counted over all ranks, clipping,
fused AdamW, a schedule, a log line every five steps. Blocks of steps alternate (A B, B A, ...) on the same
rows, so that whatever the machine does hits both; the losses of both must agree, or nothing is printed.

    python benchmarks/backends.py [--pairs 40] [--steps 5] [--backends zero2 zero3 fsdp2] [--accumulation 1]

The aim: the lower 95 % bound of (seconds of the hand-written loop / seconds of ours) at least 0.97.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

AIM = 0.97
BACKENDS = ("zero2", "zero3", "fsdp2")
ROWS_A_RANK = 4  # in one micro batch
LOGGED_EVERY = 5
RATE = 1e-4
CLIP = 1.0


def write_recipe(folder: Path, *, num_steps: int, accumulation: int) -> Path:
    """A causal LM of four layers of width 384 with its rows; about a tenth of a second a step."""
    from tests import tiny

    tiny.write_llama(
        folder / "model",
        hidden_size=384,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=6,
        intermediate_size=1024,
        vocab_size=1024,
        initializer_range=0.02,
    )
    tiny.write_instructions(folder / "train.json", rows=1200)
    path = folder / "job.yaml"
    path.write_text(
        f"""task: causal_lm
model: {{model_name_or_path: {folder / "model"}}}
data: {{train_file: {folder / "train.json"}, max_length: 128}}
training: {{global_batch_size: {2 * ROWS_A_RANK * accumulation}, max_steps: {num_steps}, seed: 0,
  per_device_train_batch_size: {ROWS_A_RANK}, learning_rate: {RATE}, max_grad_norm: {CLIP}, warmup: 0.1,
  precision: fp32, logging_steps: {LOGGED_EVERY}}}
tracking: {{report_to: none}}
output_dir: {folder / "runs"}
"""
    )
    return path


class Rows:
    """The same rows as the product's loop takes, micro batch by micro batch, for a plain DataLoader."""

    def __init__(self, job: Any, num_steps: int) -> None:
        """Look the order up; tokenised rows are plain lists, as a datasets map would leave them."""
        from launcher.data.order import cut

        store, lengths = job.store, job.store.lengths
        self.batches = [
            part.tolist()
            for step in range(num_steps)
            for part in cut(job.order.window(step), lengths, job.plan.step, job.world.rank)
        ]
        self.rows = token_rows(store)

    def __len__(self) -> int:
        """Rows of the training set."""
        return len(self.rows)

    def __getitem__(self, row: int) -> dict[str, list[int]]:
        """One tokenised row."""
        return self.rows[row]


def token_rows(store: Any) -> list[dict[str, list[int]]]:
    """Every row of the product's token store as plain lists; -100 where not trained."""
    rows = []
    for first, last in zip(store.offsets[:-1], store.offsets[1:], strict=True):
        ids = store.input_ids[first:last]
        trained = store.trained[first:last]
        labels = [int(token) if kept else -100 for token, kept in zip(ids, trained, strict=True)]
        rows.append({"input_ids": ids.tolist(), "labels": labels})
    return rows


def collate(rows: list[dict[str, list[int]]]) -> dict[str, Any]:
    """Padded on the right to the longest row."""
    import torch

    width = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [0] * (width - len(row["input_ids"])) for row in rows])
    labels = torch.tensor([row["labels"] + [-100] * (width - len(row["labels"])) for row in rows])
    mask = torch.tensor([[1] * len(row["input_ids"]) + [0] * (width - len(row["input_ids"])) for row in rows])
    return {"input_ids": ids, "labels": labels, "attention_mask": mask}


class Engine:
    """What of the hand-written loop depends on the engine."""

    def __init__(self, job: Any, model: Any) -> None:
        """`job` lends its resolved configuration, nothing else."""
        raise NotImplementedError

    def backward(self, loss: Any, *, is_last: bool) -> None:
        """Gradients of a micro batch."""
        raise NotImplementedError

    def step(self) -> None:
        """Clip, update, clear."""
        raise NotImplementedError


class Zero(Engine):
    """`deepspeed.initialize` with the JSON of the product's run: the engine clips."""

    def __init__(self, job: Any, model: Any) -> None:
        """As its documentation shows."""
        import deepspeed
        import torch

        from launcher.backends.zero_torch import engine_config

        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, fused=True)
        config = engine_config(job.strategy.parts.config)
        self.model, self.optimizer, _, _ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=config, dist_init_required=False
        )

    def backward(self, loss: Any, *, is_last: bool) -> None:
        """Not divided by the accumulation steps: the loss is a share of the global mean already."""
        self.model.set_gradient_accumulation_boundary(is_last)
        self.model.backward(loss, scale_wrt_gas=False)
        if not is_last:
            self.model.step()

    def step(self) -> None:
        """The window's last micro batch's."""
        self.model.step()


class Fsdp(Engine):
    """`fully_shard` on every decoder layer, then on the model."""

    def __init__(self, job: Any, model: Any) -> None:
        """As torch's tutorial shows."""
        import torch
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (2,))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        self.model: Any = fully_shard(model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE, weight_decay=0.0, fused=True)

    def backward(self, loss: Any, *, is_last: bool) -> None:
        """Gradients are reduced after every micro batch, as in the product's loop."""
        loss.backward()

    def step(self) -> None:
        """Torch's own clipping over the sharded parameters."""
        import torch

        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad()


def hand_written(job: Any, model: Any, num_steps: int) -> Iterator[float]:
    """First the engine; then one step a turn: this rank's share of the mean loss over the global batch."""
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader

    engine = (Fsdp if job.plan.backend == "fsdp2" else Zero)(job, model)
    rows, parts = Rows(job, num_steps), job.plan.step.accumulation_steps
    loader: Any = DataLoader(rows, batch_sampler=rows.batches, collate_fn=collate)  # type: ignore[arg-type]
    schedule = torch.optim.lr_scheduler.LambdaLR(_inner(engine.optimizer), job.rate_factor)
    engine.model.train()
    stream = iter(loader)
    yield float("nan")  # the engine is there; nothing has been trained
    for step in range(1, num_steps + 1):
        batches = [next(stream) for _ in range(parts)]
        tokens = torch.stack([(batch["labels"][:, 1:] != -100).sum() for batch in batches]).sum()
        dist.all_reduce(tokens)
        share = torch.zeros(())
        for index, batch in enumerate(batches):
            loss = engine.model(**batch, num_items_in_batch=tokens, use_cache=False).loss
            # engines average over ranks, the loss is a sum's share
            engine.backward(loss * dist.get_world_size(), is_last=index == parts - 1)
            share += loss.detach()
        engine.step()
        schedule.step()
        if step % LOGGED_EVERY == 0:
            whole = share.clone()
            dist.all_reduce(whole)
            if dist.get_rank() == 0:
                print(f"step {step} loss {whole.item():.4f}", file=sys.stderr)
        yield float(share)


def _inner(optimizer: Any) -> Any:
    """DeepSpeed's wrapper is no torch optimizer; the one inside carries the rates."""
    return getattr(optimizer, "optimizer", optimizer)


class Blocks:
    """Times blocks of steps between two barriers, turn by turn."""

    def __init__(self, steps: int, theirs: Callable[[], float]) -> None:
        """`theirs` takes one step of the other loop and returns its loss."""
        self.steps, self.take_one = steps, theirs
        self.ours: list[tuple[float, float]] = []
        self.theirs: list[tuple[float, float]] = []
        self.their_losses: list[float] = []
        self.our_losses: list[float] = []
        self.started = (0.0, 0.0)

    def begin(self) -> None:
        """Start the clock together."""
        import torch.distributed as dist

        dist.barrier()
        self.started = (time.perf_counter(), time.process_time())

    def end(self) -> tuple[float, float]:
        """Seconds until the last rank is there, and this rank's CPU seconds (all its threads')."""
        import torch.distributed as dist

        wall, cpu = self.started
        used = time.process_time() - cpu
        dist.barrier()
        return time.perf_counter() - wall, used

    def take_theirs(self) -> None:
        """One block of the hand-written loop."""
        self.begin()
        self.their_losses += [self.take_one() for _ in range(self.steps)]
        self.theirs.append(self.end())


def their_turns(taken: int) -> int:
    """How many blocks the other loop takes once ours has taken so many: A B | A B B A | A B B A ..."""
    if taken == 1:
        return 1
    return 0 if taken % 2 else 2


def worker(path: Path, backend: str, *, steps: int, theirs_first: bool) -> None:
    """One rank of the pair of processes. The first prints both lists of seconds.

    Where an engine's buffers lie is worth 3 % either way: both orders are run, each in several starts. A
    third engine lends rows and configuration, so that neither of the two is a process's first.
    """
    import torch

    from launcher.hardware.probe import machine
    from launcher.plan.choose import make_plan
    from launcher.plan.started import resolve_started
    from launcher.process.arguments import parse
    from launcher.process.starter import read_starter
    from launcher.train.callbacks.callback import Callback
    from launcher.train.job import Job
    from launcher.train.loop import train
    from launcher.train.metrics_log import MetricsLog
    from launcher.train.retry import Retry
    from launcher.train.setup import build_job, make_callbacks
    from launcher.train.state import StepRecord
    from launcher.train.world import join, leave

    torch.set_num_threads(1)
    arguments = parse(["--recipe", str(path), "--backend", backend])
    starter = read_starter(os.environ, arguments)
    started = resolve_started(arguments, starter)
    recipe, found = started.loaded.recipe, machine("cpu")
    world = join(starter, found, needs_group=True)
    plan = make_plan(recipe, name="job", machine=found, backend=backend, num_ranks=2)
    folder = path.parent / "runs"
    folder.mkdir(exist_ok=True)
    lender = build_job(recipe, plan, folder, world, started.ds_config)
    stream = hand_written(lender, _their_model(recipe), lender.total_steps)
    if theirs_first:
        next(stream)
    job = build_job(recipe, plan, folder, world, started.ds_config)
    if not theirs_first:
        next(stream)
    job.metrics = MetricsLog(
        folder, is_first=world.is_first, total_steps=job.total_steps, start=0, board=False
    )
    blocks = Blocks(steps, lambda: next(stream))

    class Turns(Callback):
        """Hands over: ours, theirs (warm-up), then ours, theirs, theirs, ours, and so on."""

        def on_record(self, job: Job, record: StepRecord) -> None:
            blocks.our_losses.append(record.loss if record.is_logged else float("nan"))

        def is_due(self, job: Job, step: int) -> bool:
            return step % steps == 0

        def run(self, job: Job) -> None:
            blocks.ours.append(blocks.end())
            for _ in range(their_turns(len(blocks.ours))):
                blocks.take_theirs()
            blocks.begin()

    callbacks = [*make_callbacks(job), Turns()]
    for callback in callbacks:
        callback.start(job)
    blocks.begin()
    train(job, callbacks, Retry(job))
    job.metrics.close()
    theirs = world.gather(blocks.their_losses)
    if world.is_first:
        whole = [sum(parts) for parts in zip(*theirs, strict=True)]
        logged = [loss for loss in blocks.our_losses if loss == loss]
        means = [
            sum(whole[at : at + LOGGED_EVERY]) / LOGGED_EVERY for at in range(0, len(whole), LOGGED_EVERY)
        ]
        print(json.dumps({"ours": blocks.ours, "theirs": blocks.theirs, "losses": [logged, means]}))
    leave(world, failed=False)


def _their_model(recipe: Any) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(recipe.model.model_name_or_path, dtype="float32")


def measured(
    backend: str, *, num_pairs: int, steps: int, accumulation: int, theirs_first: bool
) -> dict[str, Any]:
    """Both loops in two fresh processes: seconds of every block, warm-up left out, and the losses."""
    num_blocks = num_pairs + 1
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu"}
    with tempfile.TemporaryDirectory() as folder:
        path = write_recipe(Path(folder), num_steps=num_blocks * steps, accumulation=accumulation)
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node=2",
            __file__,
        ]
        command += ["--worker", str(path), "--backends", backend, "--steps", str(steps)]
        command += ["--theirs-first"] if theirs_first else []
        done = subprocess.run(
            [*command, "--pairs", str(num_pairs)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    found: dict[str, Any] = json.loads(
        next(line for line in done.stdout.splitlines() if line.startswith("{"))
    )
    return found


def main() -> int:
    """Measure, print, keep; exit code 1 where the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=8, help="of a pair of processes, even: half a turn")
    parser.add_argument("--starts", type=int, default=3, help="fresh pairs of processes for each order")
    parser.add_argument("--steps", type=int, default=5, help="a block's, a multiple of five")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--worker", type=Path)
    parser.add_argument("--theirs-first", action="store_true")
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, args.backends[0], steps=args.steps, theirs_first=args.theirs_first)
        return 0
    from benchmarks.paired import ratio, save

    figures, missed = {}, False
    for backend in args.backends:
        halves = [
            measured(
                backend,
                num_pairs=args.pairs,
                steps=args.steps,
                accumulation=args.accumulation,
                theirs_first=theirs_first,
            )
            for theirs_first in (False, True) * args.starts
        ]
        ours, theirs = halves[0]["losses"]
        pairs_of_losses = [pair for half in halves for pair in zip(*half["losses"], strict=False)]
        apart = max(abs(a - b) for a, b in pairs_of_losses)
        if apart > 1e-4:
            raise RuntimeError(f"{backend}: the losses differ by {apart:.1e}: not the same work")
        blocks = [pair for half in halves for pair in zip(half["theirs"][1:], half["ours"][1:], strict=True)]
        pairs = [(theirs_s, ours_s) for (theirs_s, _), (ours_s, _) in blocks]
        speed, cpu = ratio(pairs), ratio([(theirs_s, ours_s) for (_, theirs_s), (_, ours_s) in blocks])
        middle = [sorted(times)[len(times) // 2] / args.steps for times in zip(*pairs, strict=True)]
        missed |= speed.lower_95 < AIM
        print(
            f"{backend}: theirs / ours {speed}; CPU seconds {cpu}; "
            f"a step {middle[1] * 1e3:.0f} ms, theirs {middle[0] * 1e3:.0f} ms;"
            f" losses {ours[0]:.3f} -> {ours[-1]:.3f}, apart {apart:.1e}",
            flush=True,
        )
        figures[backend] = {
            "theirs_over_ours": speed,
            "cpu_theirs_over_ours": cpu,
            "step_s": middle[1],
            "their_step_s": middle[0],
        }
        figures[backend] |= {"losses_apart": apart, "steps_a_block": args.steps}
    print(f"aim: lower bound at least {AIM}: {'missed' if missed else 'reached'}")
    if len(args.backends) == len(BACKENDS):
        print(f"kept in {save('backends', figures).relative_to(ROOT)}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
