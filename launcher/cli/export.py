"""`launcher export RUN --to DIR`: a folder in Hugging Face layout with a model card, to hand on."""

import argparse
import shlex
from pathlib import Path

SUMMARY = "copy a trained model to a folder with a model card"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and where to write."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart, or a model folder of one")
    parser.add_argument("--to", required=True, help="a new folder, or an empty one")


def run(args: argparse.Namespace) -> int:
    """Print where the folder is."""
    from launcher.export.folder import export
    from launcher.export.new_folder import place_for

    place = place_for(args.to, option="--to", command=f"launcher export {shlex.quote(args.run)}")
    print(f"exported to {export(Path(args.run), place)}")
    return 0
