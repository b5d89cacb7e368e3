"""Many runs in one process a rank, all backends in turn: imports cost more than steps.

    torchrun --nproc_per_node N -m tests.train.worlds LIST.json

LIST.json holds the command lines of `run.py`; each is a whole life of a rank, on the same N ranks.
"""

import json
import os
import sys
from pathlib import Path

import launcher.train.rank as rank
from launcher.hardware.probe import machine as probe
from launcher.process.arguments import parse
from launcher.process.ports import free_port
from launcher.process.starter import read_starter
from tests.launching import trained


def run_all(lines: list[list[str]], num_ranks: int, folder: Path) -> str:
    """Run the lines on so many ranks; what was said."""
    path = folder / f"lines-{num_ranks}.json"
    path.write_text(json.dumps(lines))
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={num_ranks}"]
    command += [f"--master_port={free_port()}", "-m", "tests.train.worlds", str(path)]
    return trained(command, timeout_s=1800).stderr


def main(path: Path) -> None:
    """All lines in one process group: a second one would meet the first."""
    lines = json.loads(path.read_text())
    starter = read_starter(os.environ, parse([]))
    world = rank.join(starter, probe("cpu"), needs_group=True)
    leave = rank.leave
    rank.join = lambda *_, **__: world
    rank.leave = lambda *_, **__: world.barrier()
    for words in lines:
        arguments = parse(words)
        rank.run_rank(arguments, read_starter(os.environ, arguments))
    leave(world, failed=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
