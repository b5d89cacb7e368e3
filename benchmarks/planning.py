"""How long planning takes: the verb against `import torch`, and a thousand candidates in one process.

    python benchmarks/planning.py [--pairs 11] [--save]

Aims: `launcher plan lora_7b_3090` at most 0.5 of the import's time (upper bound of the paired ratio), and
1,000 candidates planned (memory, time, order) in less than a second.
"""

import argparse
import functools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from paired import Ratio, alternate, ratio, save

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

STARTUP_AIM, SECONDS_AIM = 0.5, 1.0
NUM_CANDIDATES = 1000
LAUNCHER = Path(sys.executable).with_name("launcher")
RECIPE = "lora_7b_3090"


def seconds(command: Sequence[str]) -> float:
    """Wall seconds of one process; it must end well."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def startup(num_pairs: int) -> tuple[Ratio, float, float]:
    """The verb's ratio to `import torch`, and the best seconds of both."""
    ours = functools.partial(seconds, [str(LAUNCHER), "plan", RECIPE])
    theirs = functools.partial(seconds, [sys.executable, "-c", "import torch"])
    pairs = alternate(ours, theirs, num_pairs=num_pairs)
    return ratio(pairs), min(first for first, _ in pairs), min(second for _, second in pairs)


def thousand(repeats: int = 7) -> tuple[int, float, float]:
    """A thousand candidates made, judged and ordered: their number, the best wall and CPU seconds."""
    from launcher.hardware.catalog import get
    from launcher.plan.candidates import candidates
    from launcher.plan.fit import judge, one_a_turn
    from launcher.plan.known_shape import shape_and_source
    from launcher.plan.pretend import pretend_machine
    from launcher.recipe.load import load_recipe

    gpu = get("rtx3090")
    extra = {"hardware.gpus": 4, "backend.name": "multi_gpu", "hardware.device": "cuda"}
    wide = ("global_batch_size=512", "per_device_train_batch_size=auto")
    recipe = load_recipe(RECIPE, wide, extra=extra).recipe
    shape, _ = shape_and_source(recipe)
    machine = pretend_machine(gpu.name, 4)
    took: list[tuple[float, float]] = []
    for _ in range(repeats):
        started, busy = time.perf_counter(), time.process_time()
        found = []
        while len(found) < NUM_CANDIDATES:
            made = candidates(recipe, shape, machine, 4)[: NUM_CANDIDATES - len(found)]
            found += [judge(each, gpu, gpu.usable_bytes) for each in made]
        one_a_turn(found)
        took.append((time.perf_counter() - started, time.process_time() - busy))
    return len(found), min(wall for wall, _ in took), min(cpu for _, cpu in took)


def main() -> int:
    """Print both figures; exit code 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    number, took, busy = thousand()
    print(f"{number} candidates planned in {took:.3f} s, {busy:.3f} s of CPU (aim: below {SECONDS_AIM:g} s)")
    found, ours_s, torch_s = startup(arguments.pairs)
    print(f"launcher plan {RECIPE}: {found} of `import torch`; best {ours_s:.3f} s against {torch_s:.3f} s")
    missed = found.upper_95 > STARTUP_AIM or took > SECONDS_AIM
    print(f"aims: {'missed' if missed else 'reached'}")
    if arguments.save:
        start = {"ratio": found, "best_s": round(ours_s, 3), "best_import_torch_s": round(torch_s, 3)}
        many = {"number": number, "best_s": round(took, 3), "best_cpu_s": round(busy, 3)}
        figures = {"startup": start, "candidates": many}
        print(f"kept in {save('planning', figures)}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
