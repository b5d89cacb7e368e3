"""A LoRA step of the product against TRL's SFTTrainer with the same settings, block by block in turn.

    python benchmarks/trl_sft.py [--trl-python PYTHON] [--pairs 20] [--steps 2] [--precision fp32] [--save]

SmolLM2-135M, LoRA of rank 8 on every linear layer, four rows of the shipped identity questions a step, no
packing, no recomputation. Two processes hold one trainer each, with the same weights, the same first adapter,
the same rows in the same order, one thread; one of them takes a block of steps while the other waits, and
then they change (A B, B A, ...), so that whatever the machine does hits both. Losses must agree, or nothing
is printed. The whole is done twice, each starting first once. Memory is what each process held at most
(the kernel's count), and at most while it trained.

The aims: the lower 95 % bound of the ratio of samples a second (ours / TRL's) at least 0.97, and no more
resident memory. TRL is no dependency of this project: it gets an environment of its own, made by the same
Python, and borrows every other package from here:

    python -m venv /tmp/trl && /tmp/trl/bin/pip install --no-deps trl==1.16.0
    python benchmarks/trl_sft.py --trl-python /tmp/trl/bin/python
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from sysconfig import get_path
from typing import IO, Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

AIM, MOST_MEMORY = 0.97, 1.0
ROWS_A_STEP, NUM_ROWS, RATE, WARMUP, RANK, ALPHA = 4, 88, 1e-3, 4, 8, 16
MARK = "@@ "
RECIPE = "quickstart_lm"
LORA_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def prepare(folder: Path) -> None:
    """The model as a plain folder, so that both read the same file the same way."""
    from launcher.models.load_torch import load_model, load_tokenizer
    from launcher.recipe.load import load_recipe

    options = load_recipe(RECIPE).recipe.model
    tokenizer = load_tokenizer(options)
    model: Any = load_model(
        options, task="causal_lm", dtype="float32", label_names=(), pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")


def overrides(folder: Path, *, num_steps: int, logged_every: int, precision: str) -> tuple[str, ...]:
    """What differs from the shipped recipe."""
    return (
        f"model={{model_name_or_path: {folder / 'model'}}}",
        f"data.max_train_rows={NUM_ROWS}",
        f"training.global_batch_size={ROWS_A_STEP}",
        f"training.per_device_train_batch_size={ROWS_A_STEP}",
        f"training.max_steps={num_steps}",
        f"training.learning_rate={RATE}",
        f"training.warmup={WARMUP}",
        f"training.logging_steps={logged_every}",
        f"training.precision={precision}",
        "hardware.device=cpu",
        "tracking.report_to=none",
        f"output_dir={folder / 'runs'}",
    )


class Turns:
    """A worker's end of the line: waits until it may take a block, and says how long it took."""

    def __init__(self) -> None:
        """Nothing is timed before the first turn."""
        self.started = (0.0, 0.0)

    def wait(self, **facts: Any) -> None:
        """Say so much and wait; the block begins when this returns."""
        print(MARK + json.dumps(facts), flush=True)
        sys.stdin.readline()
        self.started = (time.perf_counter(), time.process_time())

    def times(self) -> dict[str, float]:
        """Wall and CPU seconds since the block began."""
        wall, cpu = self.started
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    def ready(self) -> None:
        """Everything is loaded: from here on the peak is that of training."""
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        Path("/proc/self/clear_refs").write_text("5")  # sets the kernel's peak back to what is held now
        self.wait(ready=held)

    def end(self, losses: Sequence[float]) -> None:
        """The last word. The process's peak is the parent's to read, once it has ended."""
        status = Path("/proc/self/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        print(MARK + json.dumps({"losses": list(losses), "training_peak": peak * 1024}), flush=True)


def same_adapter(model: Any) -> None:
    """LoRA's first matrices from a generator of their own: the two trainers draw in another order."""
    import torch

    first = sorted((name, tensor) for name, tensor in model.named_parameters() if ".lora_A." in name)
    assert first, "no LoRA in this model"
    for index, (_, tensor) in enumerate(first):
        generator = torch.Generator().manual_seed(index)
        with torch.no_grad():
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.02)


def ours(folder: Path, *, num_steps: int, steps: int, precision: str) -> None:
    """The product's loop with all its callbacks."""
    import torch

    from benchmarks.backends import token_rows
    from launcher.hardware.probe import machine
    from launcher.plan.choose import make_plan
    from launcher.recipe.load import load_recipe
    from launcher.train.callbacks.callback import Callback
    from launcher.train.job import Job
    from launcher.train.loop import train
    from launcher.train.metrics_log import MetricsLog
    from launcher.train.retry import Retry
    from launcher.train.setup import build_job, make_callbacks
    from launcher.train.state import StepRecord
    from launcher.train.world import World

    turns, losses = Turns(), []
    words = overrides(folder, num_steps=num_steps, logged_every=steps, precision=precision)
    recipe, found = load_recipe(RECIPE, words).recipe, machine("cpu")
    plan = make_plan(recipe, name="job", machine=found, backend="single_gpu", num_ranks=1)
    runs = folder / "runs"
    runs.mkdir(exist_ok=True)
    job = build_job(recipe, plan, runs, World(rank=0, num_ranks=1, device=torch.device("cpu")), None)
    same_adapter(job.module)
    rows = token_rows(job.store)
    taken = [rows[row] for step in range(num_steps) for row in job.order.window(step)]
    (folder / "rows.json").write_text(json.dumps(taken), encoding="utf-8")
    del rows, taken

    class Ticks(Callback):
        """Hands the turn over after every block."""

        def on_record(self, job: Job, record: StepRecord) -> None:
            if record.is_logged:
                losses.append(record.loss)

        def is_due(self, job: Job, step: int) -> bool:
            return step % steps == 0

        def run(self, job: Job) -> None:
            turns.wait(**turns.times())

    job.metrics = MetricsLog(runs, is_first=True, total_steps=job.total_steps, start=0, board=False)
    callbacks = [*make_callbacks(job), Ticks()]
    for callback in callbacks:
        callback.start(job)
    turns.ready()
    train(job, callbacks, Retry(job))
    job.metrics.close()
    turns.end(losses)


def trl(folder: Path, *, num_steps: int, steps: int, precision: str) -> None:
    """TRL's trainer over the same rows; nothing of the product is imported here."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    turns = Turns()
    rows = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    data = Dataset.from_list(
        [
            {"input_ids": row["input_ids"], "completion_mask": [int(label >= 0) for label in row["labels"]]}
            for row in rows
        ]
    )

    class Ticks(TrainerCallback):  # type: ignore[misc]
        """Hands the turn over after every block."""

        def on_step_end(self, args: Any, state: Any, control: Any, **other: Any) -> None:
            if state.global_step % steps == 0:
                turns.wait(**turns.times())

    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32),
        args=SFTConfig(
            output_dir=str(folder / "trl"),
            per_device_train_batch_size=ROWS_A_STEP,
            max_steps=num_steps,
            learning_rate=RATE,
            warmup_steps=WARMUP,
            lr_scheduler_type="linear",
            logging_steps=steps,
            bf16=precision == "bf16",
            gradient_checkpointing=False,
            packing=False,
            max_length=None,
            pad_to_multiple_of=None,
            completion_only_loss=True,
            train_sampling_strategy="sequential",
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            seed=0,
        ),
        train_dataset=data,
        processing_class=AutoTokenizer.from_pretrained(folder / "model"),
        peft_config=LoraConfig(
            task_type="CAUSAL_LM", r=RANK, lora_alpha=ALPHA, target_modules=list(LORA_MODULES), bias="none"
        ),
        callbacks=[Ticks()],
    )
    same_adapter(trainer.model)
    turns.ready()
    trainer.train()
    turns.end([line["loss"] for line in trainer.state.log_history if "loss" in line])


WORKERS = {"ours": ours, "trl": trl}


class Worker:
    """The parent's end of the line to one trainer."""

    def __init__(
        self, python: str, who: str, folder: Path, arguments: argparse.Namespace, steps: int
    ) -> None:
        """Start it; `ready` waits until it has loaded everything."""
        command = [python, __file__, "--worker", who, "--folder", str(folder), "--num-steps", str(steps)]
        command += ["--steps", str(arguments.steps), "--precision", arguments.precision]
        self.who = who
        self.log = (folder / f"{who}.log").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": get_path("purelib")},
        )
        self.blocks: list[dict[str, float]] = []
        self.start_peak = int(self.listen()["ready"])

    def listen(self) -> dict[str, Any]:
        """The next thing it says to us; what libraries print is left out."""
        stream: IO[str] | None = self.process.stdout
        assert stream is not None
        for line in stream:
            if line.startswith(MARK):
                found: dict[str, Any] = json.loads(line.removeprefix(MARK))
                return found
        self.log.seek(0)
        raise RuntimeError(f"{self.who} ended: {self.log.read()[-3000:]}")

    def go(self) -> dict[str, Any]:
        """Let it take a block; what it says then."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self.listen()

    def take(self) -> None:
        """One block."""
        self.blocks.append(self.go())

    def finish(self) -> dict[str, Any]:
        """Its losses and peaks, in bytes, once it has ended."""
        found = self.go()
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return found | {"start_peak": self.start_peak, "peak": max(self.start_peak, used.ru_maxrss * 1024)}


def round_of(folder: Path, arguments: argparse.Namespace, num_pairs: int, *, theirs_first: bool) -> Any:
    """Both trainers once: seconds of the pairs of blocks without the first, and what each ended with."""
    num_steps = (num_pairs + 1) * arguments.steps
    a = Worker(sys.executable, "ours", folder, arguments, num_steps)
    b = Worker(arguments.trl_python, "trl", folder, arguments, num_steps)
    for index in range(num_pairs + 1):
        order = (b, a) if (index % 2 == 1) != theirs_first else (a, b)
        for worker in order:
            worker.take()
    ends = a.finish(), b.finish()
    pairs = [*zip(a.blocks[1:], b.blocks[1:], strict=True)]
    return pairs, ends


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """The figures of both rounds. Raises RuntimeError where the two did not do the same work."""
    from benchmarks.paired import ratio

    pairs, ends = [], []
    for theirs_first in (False, True):
        found, end = round_of(folder, arguments, arguments.pairs // 2, theirs_first=theirs_first)
        pairs += found
        ends.append(end)
    losses = [(one, two) for a, b in ends for one, two in zip(a["losses"], b["losses"], strict=True)]
    apart = max(abs(one - two) for one, two in losses)
    bound = 1e-3 if arguments.precision == "fp32" else 5e-2
    if apart > bound:
        raise RuntimeError(f"the losses differ by {apart:.1e}: not the same work: {losses}")
    memory = {name: [(a[name], b[name]) for a, b in ends] for name in ("peak", "training_peak", "start_peak")}
    rows = arguments.steps * ROWS_A_STEP
    middle = [sorted(pair[at]["wall"] for pair in pairs)[len(pairs) // 2] for at in (0, 1)]
    return {
        "precision": arguments.precision,
        "steps_a_block": arguments.steps,
        "samples_per_s": {"ours": rows / middle[0], "trl": rows / middle[1]},
        "ours_over_trl": ratio([(b["wall"], a["wall"]) for a, b in pairs]),
        "cpu_trl_over_ours": ratio([(b["cpu"], a["cpu"]) for a, b in pairs]),
        "losses": [losses[0], losses[-1]],
        "losses_apart": apart,
        "memory_bytes_ours_and_trl": memory,
        "memory_ratio": max(one / two for one, two in memory["peak"]),
        "training_memory_ratio": max(one / two for one, two in memory["training_peak"]),
        "load_average": os.getloadavg(),
    }


def version_of_trl(python: str) -> str:
    """Its version. Raises SystemExit with what to install where it is not there."""
    words = [python, "-c", "import importlib.metadata as m; print(m.version('trl'))"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"{python} has no trl. {(__doc__ or '').partition('TRL is no')[2]}", file=sys.stderr)
        raise SystemExit(2)
    return found.stdout.strip()


def main() -> int:
    """Measure, print, keep; exit code 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trl-python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=20, help="half of them in each round")
    parser.add_argument("--steps", type=int, default=2, help="a block's")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--worker", choices=WORKERS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--num-steps", type=int)
    arguments = parser.parse_args()
    if arguments.worker:
        WORKERS[arguments.worker](
            arguments.folder,
            num_steps=arguments.num_steps,
            steps=arguments.steps,
            precision=arguments.precision,
        )
        return 0
    from benchmarks.paired import save

    trl_version = version_of_trl(arguments.trl_python)
    with tempfile.TemporaryDirectory() as name:
        words = "import sys, pathlib, benchmarks.trl_sft as b; b.prepare(pathlib.Path(sys.argv[1]))"
        subprocess.run([sys.executable, "-c", words, name], check=True, cwd=ROOT)
        found = measure(Path(name), arguments) | {"trl": trl_version}
    print(json.dumps({key: str(value) for key, value in found.items()}, indent=1))
    reached = found["ours_over_trl"].lower_95 >= AIM, found["memory_ratio"] <= MOST_MEMORY
    print(
        f"aims: speed {'reached' if reached[0] else 'missed'}, memory {'reached' if reached[1] else 'missed'}"
    )
    if arguments.save:
        print(f"kept in {save('trl_sft', found).relative_to(ROOT)}")
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
