"""Steps poisoned on one of two ranks.

    torchrun --nproc_per_node=2 -m tests.train.numbers_cells FOLDER REPORT BACKEND

A hook makes one module's output NaN on one rank at chosen steps: real numbers that are not finite, wherever
the backend then carries them. REPORT gets whether skipped steps left weights and moments bit for bit alone,
whether the others moved them, and how the run ended.
"""

import faulthandler
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

import launcher.train.rank as rank
from launcher.errors import LauncherError
from launcher.process.arguments import parse
from launcher.process.starter import read_starter
from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.state import StepRecord

# Steps that are poisoned, counted from 1; the last ones are more in a row than the recipe allows.
SINGLE, STREAK = (3, 4, 6), (8, 9, 10)
MODULE = "encoder.layer.1.output.dense"
POISONED_RANK = 1
LIMIT_S = 800


class Poison:
    """Makes a module's output NaN on one rank in the forward passes of chosen steps, repeated ones too."""

    def __init__(self, job: Job) -> None:
        """Hook the module; the loop tells the step through the window's number."""
        self.step = 0
        self.here = job.world.rank == min(POISONED_RANK, job.world.num_ranks - 1)
        layer = next(m for name, m in job.module.named_modules() if name.endswith(MODULE))
        forward = layer.forward

        def spoilt(*inputs: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = forward(*inputs)
            return output * torch.nan if self.here and self.step in SINGLE + STREAK else output

        layer.forward = spoilt


class Recorder(Callback):
    """Compares every step's whole state with the one before."""

    def __init__(self) -> None:
        """Nothing has been seen."""
        self.before: dict[str, torch.Tensor] = {}
        self.skipped: list[int] = []
        self.last: StepRecord | None = None
        self.unchanged: dict[int, bool] = {}
        self.poison: Poison | None = None

    def start(self, job: Job) -> None:
        """Poison the model."""
        self.poison = Poison(job)
        self.poison.step = 1

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Remember whether the step was left out."""
        self.last = record
        if record.skipped:
            self.skipped.append(record.step)

    def is_due(self, job: Job, step: int) -> bool:
        """After every step."""
        return True

    def run(self, job: Job) -> None:
        """Look at weights and moments."""
        assert self.last is not None and self.poison is not None
        self.poison.step = self.last.step + 1
        now = {
            f"{name}/{key}": tensor.detach().to("cpu", copy=True)
            for name, held in job.strategy.state()
            for key, tensor in held.items()
        }
        if self.before:
            same = now.keys() == self.before.keys()
            self.unchanged[self.last.step] = same and all(
                torch.equal(tensor, self.before[key]) for key, tensor in now.items()
            )
        self.before = now


def run(folder: Path, backend: str) -> dict[str, Any]:
    """One life of a rank; what the recorder saw and how it ended."""
    recorder, make = Recorder(), rank.make_callbacks
    words = ["--recipe", str(folder / "poisoned.yaml"), "--name", backend, "--backend", backend, "--new"]
    rank.make_callbacks = lambda job: [*make(job), recorder]
    ended, code = "", 0
    try:
        rank.run_rank(parse(words), read_starter(os.environ, parse(words)))
    except LauncherError as error:
        ended, code = f"{type(error).__name__}: {error}", error.exit_code
    finally:
        rank.make_callbacks = make
    return {
        "skipped": recorder.skipped,
        "unchanged": [step for step, same in recorder.unchanged.items() if same],
        "compared": sorted(recorder.unchanged),
        "ended": ended,
        "code": code,
    }


def main(words: list[str]) -> None:
    """One backend: folder, report, its name."""
    folder, report, backend = Path(words[0]), Path(words[1]), words[2]
    faulthandler.dump_traceback_later(LIMIT_S, exit=True)  # a hang ends with where it was
    found = run(folder, backend)
    if os.environ["RANK"] == "0":
        report.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
