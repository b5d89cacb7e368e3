"""What safety costs: CPU time a step of all guards together, on a model that does almost nothing.

Two runs in alternating fresh processes. Guarded: the product as it is. Bare: the same loop without callbacks,
heartbeat, memory watch, retry, finite check and the vote on stopping. The figure is the difference of the CPU
seconds (user and system) of a step. A third run adds up what each callback takes. Aim: 1 ms together at most.

    python benchmarks/safety.py [--pairs 6]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SKIPPED, STEPS = 200, 1200
AIM_S = 1e-3


def write_recipe(folder: Path) -> Path:
    """One row a step through one layer of width 8; logs every tenth step, saves and evaluates never."""
    from tests import tiny

    sizes: dict[str, Any] = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    tiny.write_bert(folder / "model", **sizes)
    path = folder / "job.yaml"
    path.write_text(
        f"""task: classification
model: {{model_name_or_path: {folder / "model"}}}
data: {{train_file: {ROOT}/recipes/data/movie_sentiment/train.csv, max_length: 64}}
training: {{global_batch_size: 1, max_steps: {STEPS}, learning_rate: 1e-4, warmup: 0.1, precision: fp32,
  logging_steps: 10, seed: 0}}
tracking: {{report_to: none}}
output_dir: {folder / "runs"}
"""
    )
    return path


def _clock() -> Any:
    """A callback that looks at the CPU clock at the ends of the measured steps."""
    from launcher.train.callbacks.callback import Callback
    from launcher.train.job import Job

    class Clock(Callback):
        """CPU seconds at the first and the last measured step."""

        marks: list[float] = []

        def is_due(self, job: Job, step: int) -> bool:
            """Called after every step."""
            if step in (SKIPPED, STEPS):
                self.marks.append(time.process_time())
            return False

    return Clock()


def run(path: Path, *, bare: bool, parts: dict[str, float] | None = None) -> float:
    """CPU seconds a step of one whole run in this process; `parts` gets those of each callback."""
    import launcher.train.rank as rank
    from launcher.facts import Starter
    from launcher.process.arguments import parse

    clock, make = _clock(), rank.make_callbacks

    def callbacks(job: Any) -> list[Any]:
        made = make(job)
        if parts is not None:
            for each in made:
                _time(each, parts)
        return [*made, clock]

    rank.make_callbacks = callbacks
    with _bare(clock) if bare else nullcontext():
        rank.run_rank(parse(["--recipe", str(path), "--new"]), Starter(name="python", backend="single_gpu"))
    first, last = clock.marks
    return float(last - first) / (STEPS - SKIPPED)


def _time(callback: Any, parts: dict[str, float]) -> None:
    """Add up the CPU time of a callback's calls a step, on this thread, from the skipped steps on."""
    for name in ("on_record", "is_due"):
        inner = getattr(callback, name)

        def timed(*given: Any, inner: Any = inner) -> Any:
            start = time.thread_time()
            result = inner(*given)
            spent = (time.thread_time() - start) / STEPS
            key = type(callback).__name__
            parts[key] = parts.get(key, 0.0) + spent
            return result

        setattr(callback, name, timed)


@contextmanager
def _bare(clock: Any) -> Iterator[None]:
    """Take every guard out of the loop."""
    import launcher.backends.plain_torch as plain
    import launcher.train.rank as rank
    from launcher.step.micro import accumulate

    train = rank.train
    plain.poisoned_if_not_finite = lambda loss: loss  # type: ignore[attr-defined]

    def without(job: Any, callbacks: Sequence[Any], retry: Any) -> Any:
        import torch

        job.measure.phase = lambda name: nullcontext()
        never = torch.zeros(())
        job.stop.vote = lambda device: never
        retry.guarded = lambda phase, step: nullcontext()
        retry.run = lambda window: accumulate(
            job.strategy,
            window.micro_batches,
            num_targets=window.num_targets,
            seed=job.recipe.training.seed,
            step=window.step,
            rank=0,
        )
        return train(job, [clock], retry)

    rank.train = without
    yield


def worker(kind: str) -> dict[str, Any]:
    """One kind of run in this process."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_recipe(Path(folder))
        parts: dict[str, float] = {}
        cpu_s = run(path, bare=kind == "bare", parts=parts if kind == "parts" else None)
        return {"cpu_s": cpu_s, "parts": parts}


def measured(kind: str) -> dict[str, Any]:
    """One fresh process on one thread."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, __file__, "--worker", kind]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Measure, print, keep; 1 where the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--worker", choices=("guarded", "bare", "parts"))
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(worker(args.worker)))
        return 0
    from benchmarks.paired import alternate, save

    pairs = alternate(
        lambda: measured("guarded")["cpu_s"], lambda: measured("bare")["cpu_s"], num_pairs=args.pairs
    )
    differences = [guarded - bare for guarded, bare in pairs]
    cost = statistics.median(differences)
    parts = measured("parts")["parts"]
    print(
        f"CPU a step, guarded less bare: median {cost * 1e3:.3f} ms, largest {max(differences) * 1e3:.3f} ms"
    )
    for name, seconds in sorted(parts.items(), key=lambda pair: -pair[1]):
        print(f"  {name}: {seconds * 1e6:.1f} us")
    figures = {
        "cpu_s_a_step": {"median": cost, "largest": max(differences), "pairs": pairs},
        "callbacks_cpu_s_a_step": parts,
        "aim_s": AIM_S,
    }
    print(f"kept in {save('safety', figures).relative_to(ROOT)}")
    return int(cost > AIM_S)


if __name__ == "__main__":
    sys.exit(main())
