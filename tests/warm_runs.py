"""Runs in a second or two instead of fifteen: a process that has imported everything forks their ranks.

`forked("zero2", "--recipe", FILE)` is what `start([*starter("zero2"), "--recipe", FILE])` is, but for the
starter: the ranks get what torchrun gives them and the backend by its option. Where the starter itself is
looked at, start it.
"""

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class Warm:
    """The process that forks; it has no thread, and no state of a test."""

    def __init__(self) -> None:
        """Start it: imports take about ten seconds."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm_runs"],
            cwd=ROOT,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.process.kill)

    def run(self, **asked: Any) -> dict[str, Any]:
        """One run, to its end."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the process that forks has ended"
        found: dict[str, Any] = json.loads(answer)
        return found


@cache
def _warm() -> Warm:
    return Warm()


def forked(
    backend: str, *words: str, processes: int = 2, timeout_s: float = 900, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run to the end; `stderr` holds what all ranks said, the exit code is the first failed rank's."""
    num_ranks = 1 if backend in ("single_gpu", "model_parallel") else processes
    return _run([*words, "--backend", backend], num_ranks, timeout_s, variables)


def _run(
    words: list[str], num_ranks: int, timeout_s: float, variables: dict[str, str], module: str = ""
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "said.log")
        found = _warm().run(
            words=words,
            num_ranks=num_ranks,
            log=log,
            timeout_s=timeout_s,
            variables=variables,
            module=module,
        )
    code = next((code for code in found["codes"] if code), 0)
    return subprocess.CompletedProcess(words, code, stdout="", stderr=found["text"])


def trained_forked(backend: str, *words: str, **more: Any) -> str:
    """`forked`, asserting success; everything that was said."""
    done = forked(backend, *words, **more)
    assert done.returncode == 0, f"{backend} {' '.join(words)}\n{done.stderr[-6000:]}"
    return done.stderr


def live_forked(module: str, *words: str, processes: int, timeout_s: float = 900) -> str:
    """`torchrun --nproc_per_node N -m MODULE WORDS`, by the module's `main(words)`; what was said."""
    done = _run(list(words), processes, timeout_s, {}, module)
    assert done.returncode == 0, f"{module} {' '.join(words)}\n{done.stderr[-6000:]}"
    return done.stderr


def _life(module: str, words: list[str]) -> int:
    importlib.import_module(module).main(words)
    return 0


def serve() -> None:
    """A line in, a run, a line out, until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what imports and forks print is not an answer
    from tests.faults.warm import run_ranks, warm_up

    warm_up()
    for line in sys.stdin:
        asked = json.loads(line)
        module = asked["module"]
        ended = run_ranks(
            asked["words"],
            life=partial(_life, module, asked["words"]) if module else None,
            num_ranks=asked["num_ranks"],
            log=Path(asked["log"]),
            timeout_s=asked["timeout_s"],
            install=lambda rank, given=asked["variables"]: os.environ.update(given),
        )
        print(json.dumps({"codes": ended.codes, "text": ended.text}), file=answers, flush=True)


if __name__ == "__main__":
    serve()
