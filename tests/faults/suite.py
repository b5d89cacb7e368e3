"""Injects faults into real runs and asks for the undisturbed run's numbers afterwards.

    python -m tests.faults.suite --faults 210 --seed 1 [--kind NAME] [--json FILE]

Every fault: a run with it; where that ends early, the same command with --resume until it is over (three
times at most, the fault is gone then). Right means: every loss and every final weight of a run that nobody
disturbed, bit for bit, or within rounding where the cut of the batch changed. The table counts what was
injected, what came through, the steps done twice, and wrong results. A seed makes its list of faults again.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from launcher.process.children import state
from tests import tiny
from tests.faults import kinds, warm
from tests.faults.drawn import KINDS, SAVE_STEPS, STEPS, Case, Kind, cases
from tests.launching import distance, weights


class Suite:
    """Runs cases in a folder; keeps the undisturbed runs to compare with."""

    def __init__(self, folder: Path) -> None:
        """Write model and data once."""
        self.folder = folder
        self.calm: dict[tuple[str, str], Path] = {}
        tiny.write_bert(folder / "bert", dropout=0.1)
        tiny.write_bert(folder / "plain")
        tiny.write_csv(folder / "train.csv", 59)
        tiny.write_csv(folder / "eval.csv", 23, seed=5)

    def recipe(self, runs: Path, *, dropout: bool) -> Path:
        """A recipe whose runs go to `runs`."""
        runs.mkdir(parents=True, exist_ok=True)
        train = shutil.copy(self.folder / "train.csv", runs / "train.csv")
        path = runs / "job.yaml"
        path.write_text(
            f"""task: classification
model: {{model_name_or_path: {self.folder / ("bert" if dropout else "plain")}}}
data: {{train_file: {train}, eval_file: {self.folder / "eval.csv"}, max_length: 40}}
training: {{global_batch_size: 12, per_device_train_batch_size: 3, learning_rate: 5e-3, adam_epsilon: 1e-6,
  max_steps: {STEPS}, warmup: 0.1, logging_steps: 1, precision: fp32, seed: 7, save_steps: {SAVE_STEPS},
  save_total_limit: 2, eval_steps: 4}}
output_dir: {runs}
"""
        )
        return path

    def start(self, case: Case, recipe: Path, log: str, *words: str, **named: Any) -> warm.Ended:
        """One start of a case's run."""
        line = ["--recipe", str(recipe), "--name", "run", "--backend", case.backend, *words]
        return warm.run_ranks(line, num_ranks=case.num_ranks, log=recipe.parent / log, **named)

    def undisturbed(self, case: Case, kind: Kind) -> Path:
        """The run to compare with; for a step that is not finite the same in one process."""
        if case.kind == "not finite":
            return self._spoilt_alone(case)
        key = (case.backend, str(kind.exact))
        if key not in self.calm:
            recipe = self.recipe(self.folder / f"calm-{case.backend}-{kind.exact}", dropout=kind.exact)
            ended = self.start(case, recipe, "log")
            assert ended.succeeded, ended.text[-4000:]
            self.calm[key] = recipe.parent / "run"
        return self.calm[key]

    def _spoilt_alone(self, case: Case) -> Path:
        key = ("not finite", str(case.fault["step"]))
        if key not in self.calm:
            alone = Case(kind=case.kind, backend="single_gpu", num_ranks=1, fault=case.fault | {"rank": 0})
            recipe = self.recipe(self.folder / f"calm-not-finite-{case.fault['step']}", dropout=False)
            fault = dict(alone.fault)
            ended = self.start(alone, recipe, "log", install=lambda rank: kinds.spoil_the_loss(fault))
            assert ended.succeeded, ended.text[-4000:]
            self.calm[key] = recipe.parent / "run"
        return self.calm[key]

    def run(self, case: Case, number: int) -> Case:
        """Inject, continue, compare."""
        began, kind = time.monotonic(), KINDS[case.kind]
        wanted = self.undisturbed(case, kind)
        recipe = self.recipe(self.folder / f"case-{number}", dropout=kind.exact)
        run = recipe.parent / "run"
        ended = self.start(case, recipe, "log-0", **self._injection(case, kind, recipe))
        case.starts = 1
        if kind.goes_on and not ended.succeeded:
            case.notes.append(f"stopped, codes {ended.codes}: {_tail(ended.text)}")
        while not ended.succeeded and case.starts <= 3:
            done = max((line["step"] for line in kinds.written(run / "metrics.jsonl")), default=0)
            if kind.damages and case.starts == 1 and any(run.glob("checkpoint-*")):
                case.notes.append(kinds.damage(run, case.fault["seed"]))
            ended = self.start(case, recipe, f"log-{case.starts}", "--resume")
            case.lost_steps += max(0, done - _resumed_at(ended.text))
            case.starts += 1
        case.said = "" if ended.succeeded else _tail(ended.text)
        case.right = ended.succeeded and self._is_right(run, wanted, kind, case)
        if kind.goes_on and case.starts > 1 and case.kind != "two runs in one folder":
            case.right = False
        case.seconds = round(time.monotonic() - began, 1)
        return case

    def _injection(self, case: Case, kind: Kind, recipe: Path) -> dict[str, Any]:
        fault = dict(case.fault)
        found: dict[str, Any] = {}
        if kind.second_run:
            fault |= {"until": str(recipe.parent / "refused"), "phase": "window"}
            found["meanwhile"] = lambda pids: self._start_another(case, recipe, Path(fault["until"]))
        if case.kind == "kill by the clock":
            found["meanwhile"] = lambda pids: _kill_later(pids[fault["rank"]], fault["after_s"])
        elif case.kind == "data gone":
            file = recipe.parent / "train.csv"
            found["install"] = lambda rank: kinds.at(fault, lambda: file.unlink(missing_ok=True))
        elif kind.install is not None:
            install = kind.install
            found["install"] = lambda rank: install(fault) if rank == fault["rank"] else None
        if case.kind == "hung rank":  # ended as a supervisor does that sees no heartbeat
            found |= {"meanwhile": lambda pids: _until_it_stands(pids[fault["rank"]]), "timeout_s": 3.0}
        return found

    def _start_another(self, case: Case, recipe: Path, refused: Path) -> None:
        """A second run in the same folder while the first is at work: refused. Then the first goes on."""
        limit = time.monotonic() + 600
        try:
            while not (recipe.parent / "run" / "plan.json").exists() and time.monotonic() < limit:
                time.sleep(0.05)
            for words in (["--resume"], ["--new"]):
                ended = self.start(case, recipe, "log-other", *words)
                if ended.succeeded or "wait for it to end" not in ended.text or "Traceback" in ended.text:
                    case.notes.append(f"a second run was not refused {words}: {_tail(ended.text)}")
        finally:
            refused.touch()

    def _is_right(self, run: Path, wanted: Path, kind: Kind, case: Case) -> bool:
        ours = [line for line in kinds.written(run / "metrics.jsonl") if "loss" in line]
        theirs = [line for line in kinds.written(wanted / "metrics.jsonl") if "loss" in line]
        if [line["step"] for line in ours] != [line["step"] for line in theirs]:
            case.notes.append(f"steps {[line['step'] for line in ours]}")
            return False
        left, right = weights(run / "final"), weights(wanted / "final")
        losses = [[line["loss"] for line in lines] for lines in (ours, theirs)]
        if kind.exact:
            same = losses[0] == losses[1] and all(torch.equal(left[name], right[name]) for name in right)
        else:
            same = all(_close(a, b) for a, b in zip(*losses, strict=True))
            # Adam divides by tiny moments: single elements differ more than the whole does.
            size = sum(float((tensor.double() ** 2).sum()) for tensor in right.values()) ** 0.5
            same &= distance(left, right) <= 1e-3 * size
        if not same:
            case.notes.append(f"weights {distance(left, right)} apart, losses {losses}")
        return same and left.keys() == right.keys() and not any("not refused" in note for note in case.notes)


def _close(left: float, right: float) -> bool:
    return left == right or abs(left - right) <= 1e-4 * abs(right) or (left != left and right != right)


def _tail(text: str) -> str:
    return " | ".join(line for line in text.splitlines() if line.strip())[-900:]


def _resumed_at(text: str) -> int:
    found = [line.rpartition("at step ")[2] for line in text.splitlines() if line.startswith("resumed from")]
    return int("".join(filter(str.isdigit, found[-1].split()[0]))) if found else 0


def _kill_later(pid: int, after_s: float) -> None:
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)


def _until_it_stands(pid: int) -> None:
    while state(pid) not in ("T", "Z", ""):
        time.sleep(0.05)


def table(done: list[Case]) -> str:
    """Kind by kind: injected, runs that it ended, survived, steps done twice (sum and most), wrong."""
    heads = ("injected", "on ranks", " ended", "survived", " redone", " most", " wrong")
    lines = [" ".join([f"{'kind':24}", *heads])]
    for name in [*KINDS, "all"]:
        found = [case for case in done if name in (case.kind, "all")]
        if found:
            several = sum(case.num_ranks > 1 for case in found)
            lost = [case.lost_steps for case in found]
            right = sum(case.right for case in found)
            ended = sum(case.starts > 1 for case in found)
            counts = f"{len(found):8} {several:8} {ended:6} {right:8} {sum(lost):7} {max(lost):5}"
            lines.append(f"{name:24} {counts} {len(found) - right:6}")
    return "\n".join(lines)


def main() -> int:
    """Run the suite; 0 where nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--faults", type=int, default=210)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=sorted(KINDS))
    parser.add_argument("--json", type=Path)
    words = parser.parse_args()
    warm.warm_up()
    done: list[Case] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        os.environ["LAUNCHER_CACHE"] = f"{folder}/cache"
        suite = Suite(Path(folder))
        for number, case in enumerate(cases(words.faults, words.seed, words.kind)):
            done.append(suite.run(case, number))
            state = "right" if case.right else "WRONG"
            place = f"{case.kind} on {case.backend} x{case.num_ranks}"
            took = f"{case.starts} start(s), {case.lost_steps} redone, {case.seconds} s"
            print(f"{number:4} {state} {place}, {took} {case.fault} {case.notes} {case.said}", flush=True)
            if case.right:
                shutil.rmtree(Path(folder) / f"case-{number}")
    print(table(done))
    if words.json:
        words.json.write_text(json.dumps([asdict(case) for case in done], indent=1, default=str))
    return 0 if all(case.right for case in done) else 1


if __name__ == "__main__":
    sys.exit(main())
