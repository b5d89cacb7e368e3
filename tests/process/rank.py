"""A rank without torch, started by real starters: ends with its starter, and otherwise hangs."""

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from launcher.process.orphan import end_with_parent
from launcher.process.starter import read_starter

end_with_parent(read_starter(os.environ))
folder, manner = Path(sys.argv[-2]), sys.argv[-1]
if manner == "deaf":  # a rank that hangs where no handler of Python's runs
    signal.signal(signal.SIGTERM, lambda number, frame: time.sleep(60))
    signal.signal(signal.SIGINT, lambda number, frame: time.sleep(60))
if manner == "parent of a worker":
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    worker = os.fork()
    if worker == 0:
        time.sleep(60)
        os._exit(0)
    time.sleep(0.3)
    os.kill(worker, signal.SIGTERM)
    time.sleep(0.3)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
(folder / f"{os.getpid()}.rank").touch()
time.sleep(60)
