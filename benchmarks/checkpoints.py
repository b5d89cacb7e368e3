"""How long training waits for a checkpoint: written at once, against copied and written in the background.

A full fine-tuning of a decoder with random weights on one process; the steps are short, so that a save in
the background mostly runs beside the next save's wait. Pause: from the end of the step until the loop goes
on, of every save but the first (which allocates the copy), the wait for an unfinished save before it not
counted (saves are far apart in real runs: `--gap` seconds of sleep stand for that). Also the memory that
loading takes, and what the copy costs.

    python benchmarks/checkpoints.py [--hidden 512] [--layers 8] [--saves 6] [--gap 5]
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def write_recipe(folder: Path, arguments: argparse.Namespace) -> Path:
    """A decoder of that size and its recipe."""
    from tests import tiny

    tiny.write_llama(
        folder / "model",
        hidden_size=arguments.hidden,
        num_hidden_layers=arguments.layers,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=4 * arguments.hidden,
    )
    tiny.write_instructions(folder / "rows.json", 64)
    path = folder / "job.yaml"
    path.write_text(
        f"""task: causal_lm
model: {{model_name_or_path: {folder / "model"}}}
data: {{train_file: {folder / "rows.json"}, max_length: 40, template: plain}}
training: {{global_batch_size: 1, max_steps: {arguments.saves}, learning_rate: 1e-4, precision: fp32, seed: 0,
  save_steps: 1, save_total_limit: 1, logging_steps: 1}}
tracking: {{report_to: none}}
output_dir: {folder / "runs"}
"""
    )
    return path


def measure(recipe: Path, way: str, gap_s: float, words: list[str]) -> dict[str, Any]:
    """One run in this process: pause and writing time of every save, peak memory."""
    import launcher.train.saver as saver
    from launcher.process.arguments import parse
    from launcher.process.starter import read_starter
    from launcher.train.callbacks.save import Save
    from launcher.train.rank import run_rank

    pauses: list[float] = []
    writes: list[float] = []
    sizes: dict[str, int] = {}
    run, tell = Save.run, Save._tell

    def timed(self: Save, job: Any) -> None:
        self.complete(job)
        start = time.perf_counter()
        run(self, job)
        pauses.append(time.perf_counter() - start)
        sizes["trained_parameters"] = job.num_trained
        sizes["copy_bytes"] = saver.copy_bytes(job) if self.saver and self.saver.in_background else 0
        time.sleep(gap_s)

    def told(self: Save, job: Any, ended: Any) -> None:
        writes.append(ended.write_s)
        tell(self, job, ended)

    Save.run, Save._tell = timed, told  # type: ignore[method-assign]
    line = ["--recipe", str(recipe), "--name", way, f"async_save={way}", *words]
    arguments = parse(line)
    run_rank(arguments, read_starter(os.environ, arguments))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"pauses_s": pauses, "writes_s": writes, "peak_resident_bytes": peak, **sizes}


def in_own_process(folder: Path, way: str, arguments: argparse.Namespace, *words: str) -> dict[str, Any]:
    """`measure` in a process of its own, so that memory is its own too."""
    out = folder / f"{way}-{len(words)}.json"
    command = [sys.executable, __file__, "--child", str(folder), way, str(out), "--gap", str(arguments.gap)]
    command += ["--saves", str(arguments.saves), *(f"--word={word}" for word in words)]
    subprocess.run(command, check=True)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def figures(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Both ways, and a continuation for the memory of loading."""
    write_recipe(folder, arguments)
    at_once, behind = (in_own_process(folder, way, arguments) for way in ("false", "true"))
    loaded = in_own_process(folder, "false", arguments, "--resume", f"max_steps={arguments.saves + 1}")
    pause = statistics.median(behind["pauses_s"][1:])
    wait = statistics.median(at_once["pauses_s"][1:])
    size = 12 * at_once["trained_parameters"]
    return {
        "trained_parameters": at_once["trained_parameters"],
        "checkpoint_bytes": size,
        "at_once_s": wait,
        "pause_in_background_s": pause,
        "first_pause_in_background_s": behind["pauses_s"][0],
        "pause_over_at_once": pause / wait,
        "write_in_background_s": statistics.median(behind["writes_s"]),
        "copy_bytes": behind["copy_bytes"],
        "peak_resident_bytes": {
            "at once": at_once["peak_resident_bytes"],
            "in the background": behind["peak_resident_bytes"],
            "continued from a checkpoint": loaded["peak_resident_bytes"],
        },
    }


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--saves", type=int, default=6)
    parser.add_argument("--gap", type=float, default=5.0)
    parser.add_argument("--place", help="folder on the disk to be measured (the system's temporary one)")
    parser.add_argument("--child", nargs=3, metavar=("FOLDER", "WAY", "OUT"), help=argparse.SUPPRESS)
    parser.add_argument("--word", action="append", default=[], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        folder, way, out = arguments.child
        found = measure(Path(folder) / "job.yaml", way, arguments.gap, arguments.word)
        Path(out).write_text(json.dumps(found))
        return
    from benchmarks.paired import save

    with tempfile.TemporaryDirectory(dir=arguments.place) as folder:
        found = figures(Path(folder), arguments)
    print(json.dumps(found, indent=1))
    print(f"kept in {save('checkpoints', found)}")


if __name__ == "__main__":
    main()
