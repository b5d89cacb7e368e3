"""`launcher export RUN --to DIR`: a folder in Hugging Face layout with a model card, to hand on."""

import argparse
from pathlib import Path

from launcher.errors import Conflict, Problem

SUMMARY = "copy a trained model to a folder with a model card"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and where to write."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart")
    parser.add_argument("--to", required=True, help="a new folder")


def run(args: argparse.Namespace) -> int:
    """Print where the folder is."""
    to = Path(args.to)
    if to.exists():
        raise Conflict(
            Problem(
                where=str(to),
                what="this folder exists already",
                right="a new folder: nothing is written over",
                type=f"launcher export {args.run} --to ANOTHER_FOLDER",
            )
        )
    from launcher.export.folder import export

    print(f"exported to {export(Path(args.run), to)}")
    return 0
