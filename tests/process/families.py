"""Starters with ranks below them, started for a test and looked at from outside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from launcher.process.children import send

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent
ACCELERATE = [str(BIN / "accelerate"), "launch", "--config_file"]
STARTERS = {
    "accelerate": ([*ACCELERATE, str(ROOT / "accelerate_configs/single_gpu.yaml")], 1),
    "accelerate x2": (
        [*ACCELERATE, str(ROOT / "accelerate_configs/multi_gpu.yaml"), "--main_process_port", "0"],
        2,
    ),
    "torchrun x2": (
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"],
        2,
    ),
    "deepspeed x2": ([str(BIN / "deepspeed"), "--num_gpus", "2"], 2),
}
ENDS_S = 60.0  # far more than anything here takes to end, far less than what is to be ended would live


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Family:
    """A command whose ranks run rank.py: each leaves a file with its pid."""

    def __init__(self, command: list[str], folder: Path, manner: str, **variables: str) -> None:
        """Start it in a session of its own, as a shell does with a job."""
        self.folder = folder
        self.process = subprocess.Popen(
            [*command, str(HERE / "rank.py"), str(folder), manner],
            env=os.environ | variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ranks(self, count: int, timeout_s: float = 600) -> list[int]:
        """The pids of the ranks once all have started."""
        deadline = time.monotonic() + timeout_s
        while len(found := [int(path.stem) for path in self.folder.glob("*.rank")]) < count:
            assert time.monotonic() < deadline, "the ranks did not start"
            assert self.process.poll() is None, "the starter ended"
            time.sleep(0.05)
        return found

    def end(self, number: int, whole_group: bool = False) -> None:
        """The signal, to the starter's pid or to its group as Ctrl-C sends it."""
        if whole_group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def clean(self) -> None:
        """Leave nothing behind, whatever the test found."""
        ranks = [int(path.stem) for path in self.folder.glob("*.rank")]
        send([pid for pid in ranks if is_alive(pid)], signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def left_after(pids: list[int], wait_s: float = ENDS_S) -> list[int]:
    """Those still alive after at most so long; returns as soon as none is."""
    deadline = time.monotonic() + wait_s
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left
