"""`launcher compare RECIPE --vary KEY=A,B`: run or plan every setting, and put them into one table."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import EXIT_FAILED, BadValue, Problem
from launcher.process.arguments import Grammar, Reader

if TYPE_CHECKING:
    from launcher.report.compare_cells import Cell
    from launcher.report.compare_run import Comparison
    from launcher.report.compare_table import Row

SUMMARY = "one recipe with a key varied: memory, speed and quality in one table"
USAGE = """usage: launcher compare RECIPE --vary KEY=A,B [--vary KEY=C,D] [--seeds 1,2,3] [--plan] [--json]
                        [--metric NAME] [--backend NAME] [--gpus N] [--output_dir DIR] [key=value ...]

--vary KEY=A,B  a recipe's key and its values; several: every combination of them
--seeds 1,2,3   each setting once a seed: quality is a mean and a spread then
--plan          do not run: trained parameters, predicted memory and time (gpu=CARD names a card)
--metric NAME   the quality that is shown (the recipe's metric_for_best_model, or the task's first)
--json          the table as JSON

Runs, logs, comparison.json, comparison.txt and comparison.svg lie in OUTPUT_DIR/compare-RECIPE. Started
again, finished settings are taken from there, and one that was cut off goes on.
exit code: 0 every setting finished, 1 one of them did not"""
GRAMMAR = Grammar(
    with_value=("recipe", "seeds", "metric", "backend", "gpus", "output_dir", "starter"),
    flags=("plan", "json"),
    repeated=("vary",),
    names_recipe=True,
    usage=USAGE,
)


def run(reader: Reader) -> int:
    """Print the table; the exit code says whether every setting finished."""
    varied = reader.repeated.get("vary", [])
    if "recipe" not in reader.options or not varied:
        raise BadValue(
            Problem(
                what="no recipe was named" if varied else "nothing is varied",
                right="a recipe, and a key with two values or more",
                type="launcher compare quickstart --vary adapter.method=full,lora",
            )
        )
    return _compare(reader, varied)


def _compare(reader: Reader, varied: list[str]) -> int:
    from launcher.recipe.evaluation_rules import metrics_of
    from launcher.recipe.load import load_recipe
    from launcher.report.compare_cells import cells, read_axis, read_seeds
    from launcher.report.compare_run import Comparison

    overrides = tuple(reader.overrides) + _decided(reader)
    loaded = load_recipe(reader.options["recipe"], overrides)
    asked = reader.options.get("metric") or loaded.recipe.training.metric_for_best_model
    metric = (asked or metrics_of(loaded.recipe)[0]).removeprefix("eval_")
    out = Path(reader.options.get("output_dir") or loaded.recipe.output_dir).expanduser()
    comparison = Comparison(
        recipe=reader.options["recipe"],
        overrides=overrides,
        words=_words(reader),
        folder=out / f"compare-{loaded.name}",
    )
    seeds = read_seeds(reader.options["seeds"]) if "seeds" in reader.options else ()
    found = cells([read_axis(text) for text in varied], seeds)
    if "plan" in reader.flags:
        return _plan(comparison, found, reader)
    return _run(comparison, found, metric, reader)


def _decided(reader: Reader) -> tuple[str, ...]:
    """Backend and cards are recipe keys too, so that refusals are told before anything starts."""
    found = [f"backend.name={reader.options['backend']}"] if "backend" in reader.options else []
    found += [f"hardware.gpus={reader.options['gpus']}"] if "gpus" in reader.options else []
    return tuple(found)


def _words(reader: Reader) -> tuple[str, ...]:
    return ("--starter", reader.options["starter"]) if "starter" in reader.options else ()


def _plan(comparison: "Comparison", found: "list[Cell]", reader: Reader) -> int:
    from launcher.report.compare_plan import planned_rows

    rows = [*planned_rows(comparison, found)]
    _print(rows, "quality", reader)
    return EXIT_FAILED if any(row.why for row in rows) else 0


def _run(comparison: "Comparison", found: "list[Cell]", metric: str, reader: Reader) -> int:
    from launcher.report.compare_plot import svg
    from launcher.report.compare_run import run_cells
    from launcher.report.compare_table import as_json, rows, text

    outcomes = []
    try:
        for outcome in run_cells(comparison, found):
            outcomes.append(outcome)
            table = rows(outcomes, metric)
            comparison.folder.mkdir(parents=True, exist_ok=True)
            for name, content in (
                ("comparison.json", json.dumps(as_json(table, metric), indent=2, ensure_ascii=False) + "\n"),
                ("comparison.txt", text(table, metric) + "\n"),
                ("comparison.svg", svg(table, metric)),
            ):
                (comparison.folder / name).write_text(content, encoding="utf-8")
    except KeyboardInterrupt:
        print(f"stopped: {len(outcomes)} of {len(found)} are done; the same line goes on", file=sys.stderr)
        raise
    _print(table, metric, reader)
    print(f"table and bars: {comparison.folder}/comparison.*", file=sys.stderr)
    return EXIT_FAILED if any(outcome.why for outcome in outcomes) else 0


def _print(rows: "list[Row]", metric: str, reader: Reader) -> None:
    from launcher.report.compare_table import as_json, text

    if "json" in reader.flags:
        print(json.dumps(as_json(rows, metric), indent=2, ensure_ascii=False))
    else:
        print(text(rows, metric))
