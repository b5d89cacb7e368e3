"""Runs by `launcher run` that end in every way a run can, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.process.children import send
from launcher.process.watchdog import parent_of
from tests import tiny
from tests.launching import ROOT, environment
from tests.process import traces

BACKENDS = (
    *("single_gpu", "multi_gpu", "zero1", "zero2", "zero2_offload"),
    *("zero3", "zero3_offload", "fsdp2", "fsdp2_offload"),
)
# Exit codes: 75 where a rank could still say that the run can be resumed. Of a killed rank's others, one
# may fail in its broken connection before the starter's SIGTERM reaches it.
CODES = {"success": {0}, "mistake": {1, 2}, "interrupt": {75}, "killed rank": {1, 75}}
SETTLE_S = 60.0  # at most, after the command's own end: watchdogs poll every 0.2 s


def write_recipe(folder: Path) -> Path:
    """The least that trains: one layer of width 8."""
    sizes: dict[str, Any] = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    tiny.write_bert(folder / "model", **sizes)
    tiny.write_csv(folder / "train.csv", rows=40)
    path = folder / "job.yaml"
    path.write_text(
        f"""task: classification
model: {{model_name_or_path: {folder / "model"}}}
data: {{train_file: {folder / "train.csv"}, max_length: 32}}
training: {{global_batch_size: 4, max_steps: 3, learning_rate: 1e-3, precision: fp32, logging_steps: 1}}
tracking: {{report_to: none}}
output_dir: {folder / "runs"}
"""
    )
    return path


@dataclass
class Ended:
    """A run's exit code, its last words, and everything that is still there though it should not be."""

    code: int
    text: str
    left: list[str] = field(default_factory=list)


class Ending:
    """One run on one backend, brought to one kind of end, looked at from outside."""

    def __init__(self, recipe: Path, folder: Path, backend: str, kind: str) -> None:
        """`folder` is this run's alone; nothing is started yet."""
        self.recipe, self.folder, self.backend, self.kind = recipe, folder, backend, kind
        self.mark = uuid.uuid4().hex
        self.ports: set[str] = set()
        self.pids: set[int] = set()
        self.shared: set[str] = set()
        self.was_reached = False
        self.temporary = folder / "tmp"

    def run(self, timeout_s: float = 900) -> Ended:
        """Start, bring to its end, look."""
        self.temporary.mkdir(parents=True)
        before = traces.shared_memory()
        with (self.folder / "output.txt").open("wb") as output:
            process = self._start(output.fileno())
            try:
                code = self._wait(process, _ACTIONS.get(self.kind), time.monotonic() + timeout_s)
                left = self._left(before)
            finally:
                self._clean(process)
        text = (self.folder / "output.txt").read_text(errors="replace")
        if "terminate called" in text:
            left.append("an abort at the interpreter's end")
        return Ended(code, text, left)

    def _start(self, output: int) -> "subprocess.Popen[bytes]":
        processes = 1 if self.backend == "single_gpu" else 2
        steps = {"mistake": ["data.max_length=4096"]}.get(self.kind, [])
        if self.kind in _ACTIONS:
            steps = ["training.max_steps=100000", "training.save_steps=50", "training.save_total_limit=1"]
            steps += ["data.dataloader_num_workers=1"]  # shared memory, and a process below the rank
        words = [str(self.recipe), "--backend", self.backend, "--gpus", str(processes), *steps]
        return subprocess.Popen(
            [sys.executable, "-m", "launcher", "run", *words, "--output_dir", str(self.folder / "runs")],
            cwd=ROOT,
            env=environment() | {traces.MARK: self.mark, "TMPDIR": str(self.temporary)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_take_interrupts,
        )

    def _wait(
        self,
        process: "subprocess.Popen[bytes]",
        act: "Callable[[Ending, subprocess.Popen[bytes]], None] | None",
        deadline: float,
    ) -> int:
        """The exit code. Acts once the run has logged a few steps; notes what the run holds meanwhile."""
        log = self.folder / "runs/job/metrics.jsonl"
        while process.poll() is None and time.monotonic() < deadline:
            self._note(traces.marked(self.mark))
            if act is not None and log.exists() and log.read_bytes().count(b"\n") > 3:
                act(self, process)
                act = None
            time.sleep(0.3)
        assert process.returncode is not None, f"{self.kind} on {self.backend} did not end"
        self.was_reached = act is None
        return process.returncode

    def _note(self, pids: list[int]) -> None:
        """Other tests run beside this one: what is theirs is not this run's fault."""
        self.pids |= set(pids)
        self.ports |= traces.ports_of(pids)
        self.shared |= traces.held_shared_memory(pids)

    def _is_own(self, name: str) -> bool:
        """Whether this run was seen to hold the file of shared memory, or one of its processes named it."""
        return name in self.shared or any(str(pid) in name.split("_") for pid in self.pids)

    def _left(self, shared_before: set[str]) -> list[str]:
        """Findings after a moment's grace for processes; the rest must be gone with them."""
        deadline = time.monotonic() + SETTLE_S
        while (alive := traces.marked(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = [f"process {pid}: {traces.words(pid)}" for pid in alive]
        found += [f"a listening port ({inode})" for inode in self.ports & traces.listening()]
        new = {name for name in traces.shared_memory() - shared_before if self._is_own(name)}
        found += [f"/dev/shm/{name}" for name in traces.abandoned(new)]
        return found + [f"temporary {name}" for name in traces.files_in(self.temporary)]

    def _clean(self, process: "subprocess.Popen[bytes]") -> None:
        """Leave nothing behind, whatever was found."""
        send(traces.marked(self.mark), signal.SIGKILL)
        process.wait()


def _take_interrupts() -> None:
    """A shell starts its background jobs with SIGINT ignored, and that is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt(ending: Ending, process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)


def _kill_last_rank(ending: Ending, process: "subprocess.Popen[bytes]") -> None:
    found = {pid: rank for pid in traces.marked(ending.mark) if (rank := traces.rank_of(pid)) is not None}
    ranks = [pid for pid in found if parent_of(pid) not in found]  # its data workers look like the rank
    os.kill(max(ranks, key=lambda pid: found[pid]), signal.SIGKILL)


_ACTIONS = {"interrupt": _interrupt, "killed rank": _kill_last_rank}


def faults(ending: Ending) -> tuple[list[str], float]:
    """Everything wrong with one ending, the exit code included, and the seconds it took."""
    started = time.perf_counter()
    ended = ending.run()
    found = [*ended.left]
    if not ending.was_reached:
        found.append("the run ended before it could be brought to its end")
    if found or ended.code not in CODES[ending.kind]:
        found.append(f"exit code {ended.code}\n{ended.text[-3000:]}")
    return found, time.perf_counter() - started


def main(kinds: list[str], times: int, folder: Path) -> int:
    """Every backend, those kinds of end, so many times in turn; one line each, then counts."""
    recipe = write_recipe(folder)
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for turn in range(times):
        for backend in BACKENDS:
            for kind in kinds:
                key = (backend, kind)
                found, seconds = faults(
                    Ending(recipe, folder / f"{turn}-{backend}-{kind[:4]}", backend, kind)
                )
                clean, all_ = counts.get(key, (0, 0))
                counts[key] = (clean + (not found), all_ + 1)
                print(f"{turn} {backend} {kind}: {'; '.join(found) or 'clean'} ({seconds:.0f} s)", flush=True)
    for (backend, kind), (clean, all_) in counts.items():
        print(f"{backend} {kind}: {clean} of {all_} clean")
    return int(any(clean != all_ for clean, all_ in counts.values()))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        sys.exit(main(sys.argv[2:] or [*CODES], int(sys.argv[1]), Path(place)))
