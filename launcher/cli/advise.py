"""`launcher advise`: a ready recipe for a model, a number of rows and a card, with its reasons."""

import argparse
import sys
from pathlib import Path

from launcher.errors import BadValue, Problem

SUMMARY = "write a recipe that fits a model, your rows and a card, with the reasons"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Model, rows and card are needed; the rest has defaults."""
    parser.add_argument("--model", required=True, metavar="ID|FOLDER", help="hub id or folder")
    parser.add_argument("--rows", required=True, type=int, metavar="N", help="rows to train on")
    parser.add_argument("--gpu", required=True, metavar="CARD", help="a name of launcher/hardware/gpus.csv")
    parser.add_argument("--gpus", type=int, default=1, metavar="N", help="how many cards (default 1)")
    parser.add_argument("--task", choices=("classification", "causal_lm"), help="default: by the model")
    parser.add_argument("--train-file", metavar="FILE", help="your rows; default: example rows stand there")
    parser.add_argument("--max-length", type=int, default=512, metavar="N", help="tokens a row (default 512)")
    parser.add_argument("--ask-hub", action="store_true", help="fetch an unknown model's config.json")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of standard output")


def run(args: argparse.Namespace) -> int:
    """Print or write the recipe; what to type next goes to standard error."""
    from launcher.plan.advice_choices import Situation
    from launcher.plan.advise import advise
    from launcher.plan.advised_recipe import recipe_text
    from launcher.plan.sweep import card_name

    for name in ("rows", "gpus", "max_length"):
        if getattr(args, name) < 1:
            raise _too_small(name.replace("_", "-"), getattr(args, name))
    advice = advise(
        Situation(
            model=args.model,
            rows=args.rows,
            gpu=card_name(args.gpu, "--gpu"),
            gpus=args.gpus,
            task=args.task,
            train_file=args.train_file,
            max_length=args.max_length,
            ask_hub=args.ask_hub,
        )
    )
    text = recipe_text(advice)
    if args.out is None:
        print(text, end="")
    else:
        _write(args.out, text)
    name = args.out or "FILE.yaml"
    print(f"next: launcher check {name}; launcher plan {name}; launcher rehearse {name}", file=sys.stderr)
    return 0


def _write(path: Path, text: str) -> None:
    if path.exists():
        raise BadValue(
            Problem(
                where=str(path), what="the file is there already", right="a new name", type="--out other.yaml"
            )
        )
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadValue(
            Problem(
                where=str(path),
                what=f"cannot be written ({error.strerror})",
                right="a file in a folder that exists",
                type="--out advised.yaml",
            )
        ) from error
    print(f"written {path}", file=sys.stderr)


def _too_small(name: str, value: int) -> BadValue:
    return BadValue(
        Problem(where=f"--{name}", what=f"{value} is too few", right="a number from 1", type=f"--{name} 1000")
    )
