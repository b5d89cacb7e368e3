"""Rehearse the shipped recipes, each on one process and on a backend that shards; `make rehearse` calls this.

    python scripts/rehearse_library.py [NAME ...] [--workers 2] [--some N --seed S] [--json FILE] [--list]

Every rehearsal is whole: steps, checkpoints, a kill, a resume, an export and its reload. Recipes that shrink
to the same rehearsal share one. Everything is imported once and every process is a fork, so no starter is
rehearsed here: `launcher rehearse NAME` does that. Gives 1 where one fails.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from launcher.recipe import library
from launcher.recipe.load import load_recipe
from launcher.rehearse.alike import Cell, cells

# Before the hub's client and torch are imported: local files and the CPU alone, one thread a process.
SETTINGS = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DS_ACCELERATOR": "cpu"}
SETTINGS |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def warm_up(asked: list[Cell]) -> None:
    """What every rank needs, once; forks share it."""
    import torch

    torch.set_num_threads(1)  # before anything is computed: a pool of threads would not survive a fork
    import accelerate  # noqa: F401
    import deepspeed  # noqa: F401
    import peft  # noqa: F401
    import transformers  # noqa: F401

    import launcher.train.rank  # noqa: F401
    from launcher.rehearse.warm_torch import build_models, import_pieces

    import_pieces()
    build_models(load_recipe(cell.name).recipe for cell in asked)


def rehearse(cell: Cell, folder: Path) -> int:
    """In a fork: one rehearsal; its verdict lies in the folder as verdict.json."""
    from launcher.rehearse.processes import Copies
    from launcher.rehearse.rehearsal import Rehearsal

    log = os.open(folder / "said.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    asked = {"backend.name": cell.backend, "hardware.gpus": cell.num_ranks}
    loaded = load_recipe(cell.name, extra=asked)
    (folder / "work").mkdir()
    verdict = Rehearsal(loaded=loaded, folder=folder / "work", say=print, processes=Copies()).run()
    (folder / "verdict.json").write_text(verdict.to_json(), encoding="utf-8")
    return 0 if verdict.passed else 1


def start(cell: Cell, folder: Path) -> int:
    """Fork one rehearsal; its process id."""
    folder.mkdir()
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        code = 1
        try:
            code = rehearse(cell, folder)
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid


def told(cell: Cell, folder: Path) -> dict[str, object]:
    """The verdict; what was said last where there is none."""
    file = folder / "verdict.json"
    if file.is_file():
        verdict: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    else:
        said = (folder / "said.log").read_text(encoding="utf-8", errors="replace")
        verdict = {"passed": False, "failed_stage": "process", "message": said[-2000:], "seconds": 0.0}
    return verdict | {"recipes": list(cell.recipes), "backend": cell.backend, "processes": cell.num_ranks}


def show(verdict: dict[str, object]) -> None:
    """One line, and the reason of a failure."""
    recipes = verdict["recipes"]
    assert isinstance(recipes, list)
    also = f"  (and {', '.join(recipes[1:])})" if recipes[1:] else ""
    word = "passed" if verdict["passed"] else "FAILED"
    spent = f"{verdict['seconds']:>5} s ({verdict['cpu_seconds']:>5} s of CPU)"
    print(f"{word}  {spent}  {recipes[0]} on {verdict['backend']}{also}", flush=True)
    if not verdict["passed"]:
        print(f"  stage '{verdict['failed_stage']}': {verdict['message']}", file=sys.stderr, flush=True)


def run_all(asked: list[Cell], workers: int, kept: Path | None) -> list[dict[str, object]]:
    """So many at a time; verdicts in the order of their ends, written to `kept` as they come."""
    waiting, found = list(reversed(asked)), []
    running: dict[int, tuple[Cell, Path]] = {}
    with tempfile.TemporaryDirectory(prefix="launcher-library-") as name:
        while waiting or running:
            while waiting and len(running) < workers:
                cell = waiting.pop()
                folder = Path(name) / str(len(waiting))
                running[start(cell, folder)] = (cell, folder)
            pid, _, used = os.wait4(-1, 0)
            if pid in running:
                found.append(told(*running.pop(pid)))
                found[-1]["cpu_seconds"] = round(used.ru_utime + used.ru_stime, 1)  # its ranks' too
                show(found[-1])
                if kept is not None:
                    kept.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def wanted(args: argparse.Namespace) -> list[Cell]:
    """The cells of the named recipes, all where none is named; a few by seed where asked."""
    found = cells(args.names or library.names())
    if args.some is not None:
        found = random.Random(args.seed).sample(found, min(args.some, len(found)))
    return found


def main(argv: list[str] | None = None) -> int:
    """Rehearse, tell, and give 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="recipes; all where none is named")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="rehearsals at a time (2)")
    parser.add_argument("--some", type=int, metavar="N", help="only so many, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts there")
    parser.add_argument("--list", action="store_true", help="only say what would be rehearsed")
    args = parser.parse_args(argv)
    asked = wanted(args)
    if args.list:
        for each in asked:
            print(f"{each.backend:16} {', '.join(each.recipes)}")
        return 0
    os.environ.update(SETTINGS)
    begin = time.perf_counter()
    warm_up(asked)
    verdicts = run_all(asked, args.workers, args.json)
    failed = sum(not verdict["passed"] for verdict in verdicts)
    took = (time.perf_counter() - begin) / 60
    print(f"{len(verdicts) - failed} of {len(verdicts)} rehearsals passed in {took:.1f} minutes")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
