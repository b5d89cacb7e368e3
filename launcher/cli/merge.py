"""`launcher merge RUN`: put a LoRA adapter into its base, checked by its logits before it counts."""

import argparse
from pathlib import Path

from launcher.errors import Conflict, Problem

SUMMARY = "merge a LoRA adapter into its base model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and where to write."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart_lm")
    parser.add_argument("--out", help="folder for the merged model (RUN/merged)")


def run(args: argparse.Namespace) -> int:
    """Print where the merged model is; 0 once its logits agree."""
    source = Path(args.run)
    out = Path(args.out) if args.out else source / "merged"
    if out.exists():
        raise Conflict(
            Problem(
                where=str(out),
                what="this folder exists already",
                right="a new folder: nothing is written over",
                type=f"launcher merge {args.run} --out FOLDER",
            )
        )
    from launcher.export.merge import merge, require_mergeable

    require_mergeable(source)  # before the base is loaded
    done = merge(source, out)
    print(f"merged into {done.folder}; reloaded, its logits differ by {done.difference:.1e} of their size")
    return 0
