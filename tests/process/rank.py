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
LIVES_S = 1800  # a rank that nobody ends outlives every wait of a test
if manner == "deaf":  # a rank that hangs where no handler of Python's runs
    signal.signal(signal.SIGTERM, lambda number, frame: time.sleep(LIVES_S))
    signal.signal(signal.SIGINT, lambda number, frame: time.sleep(LIVES_S))
if manner == "parent of a worker":
    heard, says = os.pipe()
    signal.signal(signal.SIGTERM, lambda number, frame: os.write(says, b"asked"))
    worker = os.fork()
    if worker == 0:
        os.write(says, b"up")
        time.sleep(LIVES_S)
        os._exit(0)
    os.read(heard, 10)
    os.kill(worker, signal.SIGTERM)
    os.read(heard, 10)
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
(folder / f"{os.getpid()}.rank").touch()
time.sleep(LIVES_S)
