"""`launcher eval RUN --file FILE`: a finished run measured on a labelled file, as training measures."""

import argparse
import json
import sys
from pathlib import Path

from launcher.errors import BadValue, Problem

SUMMARY = "measure a finished run's model on a labelled file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and --file."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart")
    parser.add_argument("--file", required=True, help="labelled rows of the training rows' shape")
    parser.add_argument("--batch-size", type=int, default=32, help="rows at once")
    parser.add_argument("--max-rows", type=int, help="at most so many rows, drawn by a fixed seed")


def run(args: argparse.Namespace) -> int:
    """Print one JSON object: the metrics, the number of rows, where the model and the rows are."""
    _check(args)
    from launcher.train.final_model import read_facts

    read_facts(Path(args.run))  # refuse a wrong folder before torch is imported
    from launcher.export.evaluate import evaluate_file

    found = evaluate_file(Path(args.run), args.file, batch_size=args.batch_size, max_rows=args.max_rows)
    for notice in found.notices:
        print(notice, file=sys.stderr)
    facts = {"run": args.run, "file": args.file, "rows": found.rows, "steps": found.steps}
    print(json.dumps(facts | found.metrics, ensure_ascii=False, indent=2))
    return 0


def _check(args: argparse.Namespace) -> None:
    """Raise BadValue for what can be told without the model."""
    path = Path(args.file)
    if not args.file.startswith("hf://") and "*" not in args.file and not path.exists():
        raise BadValue(
            Problem(
                where="--file",
                what=f"there is no file '{args.file}'",
                right="a labelled file of the shape that the run was trained on",
                type=f"launcher eval {args.run} --file FILE.csv",
            )
        )
    for name in ("batch_size", "max_rows"):
        value = getattr(args, name)
        if value is not None and value < 1:
            option = f"--{name.replace('_', '-')}"
            raise BadValue(
                Problem(where=option, what=f"{value} rows", right="1 or more", type=f"{option} 32")
            )
