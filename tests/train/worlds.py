"""Many runs in one process a rank, all backends in turn: imports cost more than steps.

    torchrun --nproc_per_node N -m tests.train.worlds LIST.json

LIST.json holds runs: the command line of `run.py` and, for one rank, what happens to it when it opens a file
for the first or second time. Each is a whole life of a rank, on the same N ranks.
"""

import json
import os
import resource
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import launcher.train.rank as rank
from launcher.errors import LauncherError
from launcher.hardware.probe import machine as probe
from launcher.process.arguments import parse
from launcher.process.starter import read_starter
from tests.warm_runs import live_forked


@dataclass(frozen=True, kw_only=True)
class Life:
    """One run. `events`: rank, a part of a path, and `stop`, `limit` (files may not grow) or `free`."""

    words: list[str]
    events: tuple[tuple[int, str, str], ...] = ()
    code: int = 0


def run_all(lives: list[Life], num_ranks: int, folder: Path) -> str:
    """Live them on so many ranks, each to its expected exit code; what was said."""
    path = folder / f"lives-{num_ranks}.json"
    path.write_text(json.dumps([asdict(life) for life in lives]))
    return live_forked("tests.train.worlds", str(path), processes=num_ranks, timeout_s=1800)


_coming: list[tuple[str, str]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _coming and _coming[0][0] in str(arguments[0]):
        _part, act = _coming.pop(0)
        if act == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            soft = 4096 if act == "limit" else resource.RLIM_INFINITY
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


def live(life: Life, own_rank: int) -> None:
    """One run on this rank. Raises AssertionError for another exit code than expected."""
    _coming[:] = [(part, act) for number, part, act in life.events if number == own_rank]
    arguments = parse(life.words)
    try:
        code = rank.run_rank(arguments, read_starter(os.environ, arguments))
    except LauncherError as error:
        code = error.exit_code
        print(f"rank {own_rank}: {error}", file=sys.stderr, flush=True)
    assert code == life.code and not _coming, f"{life}: exit code {code}, still to come {_coming}"


def main(words: list[str]) -> None:
    """All lives in one process group: a second one would meet the first."""
    lives = [Life(**each) for each in json.loads(Path(words[0]).read_text())]
    starter = read_starter(os.environ, parse([]))
    world = rank.join(starter, probe("cpu"), needs_group=True)
    leave = rank.leave
    rank.join = lambda *_, **__: world
    rank.leave = lambda *_, **__: world.barrier()
    sys.addaudithook(_hook)
    for life in lives:
        live(life, world.rank)
    leave(world, failed=False)


if __name__ == "__main__":
    main(sys.argv[1:])
