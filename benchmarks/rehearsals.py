"""Every shipped recipe rehearsed, timed: each on one process and on a backend that shards.

    python benchmarks/rehearsals.py [--workers 2] [--save] [WORD ...]

WORDs go to `scripts/rehearse_library.py` (names, --some N --seed S). The aim is 15 minutes on two cores. A
rehearsal's seconds depend on its neighbour: two run at a time.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from paired import save

ROOT = Path(__file__).resolve().parents[1]
AIM_MINUTES = 15.0


def rehearse(words: list[str], verdicts: Path) -> float:
    """Minutes of the whole; what it says passes through."""
    started = time.perf_counter()
    command = [sys.executable, str(ROOT / "scripts/rehearse_library.py"), *words, "--json", str(verdicts)]
    subprocess.run(command, check=False)
    return (time.perf_counter() - started) / 60


def figures(found: list[dict[str, Any]], minutes: float, workers: int) -> dict[str, Any]:
    """Seconds a rehearsal and stage by stage, and what failed with its message."""
    stages = sorted({stage for each in found for stage in each.get("stage_seconds", {})})
    return {
        "rehearsals": len(found),
        "passed": sum(each["passed"] for each in found),
        "minutes": round(minutes, 1),
        "aim_minutes": AIM_MINUTES,
        "workers": workers,
        # What an otherwise idle machine would need at least, however busy this one was.
        "cpu_minutes": round(sum(each.get("cpu_seconds", 0) for each in found) / 60, 1),
        "mean_seconds_by_stage": {
            stage: round(sum(each["stage_seconds"].get(stage, 0) for each in found) / len(found), 2)
            for stage in stages
        },
        "seconds": {f"{each['recipes'][0]} on {each['backend']}": each["seconds"] for each in found},
        "proves_also": {each["recipes"][0]: each["recipes"][1:] for each in found if each["recipes"][1:]},
        "failed": {
            f"{each['recipes'][0]} on {each['backend']}": f"{each['failed_stage']}: {each['message']}"[:400]
            for each in found
            if not each["passed"]
        },
    }


def main() -> int:
    """Rehearse, tell, save where asked to; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--save", action="store_true", help="write the figures into benchmarks/results/")
    args, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        verdicts = Path(folder) / "verdicts.json"
        minutes = rehearse([*words, "--workers", str(args.workers)], verdicts)
        found = json.loads(verdicts.read_text(encoding="utf-8"))
    kept = figures(found, minutes, args.workers)
    print(f"{kept['passed']} of {kept['rehearsals']} passed in {kept['minutes']} minutes", file=sys.stderr)
    if args.save:
        print(save("rehearsals", kept))
    return int(kept["passed"] < kept["rehearsals"])


if __name__ == "__main__":
    raise SystemExit(main())
