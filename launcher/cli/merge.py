"""`launcher merge RUN`: put a LoRA adapter into its base, checked by its logits before it counts."""

import argparse
import shlex
from pathlib import Path

SUMMARY = "merge a LoRA adapter into its base model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """RUN and where to write."""
    parser.add_argument("run", help="a run folder, such as runs/quickstart_lm")
    parser.add_argument("--out", help="a new folder for the merged model, or an empty one (RUN/merged)")


def run(args: argparse.Namespace) -> int:
    """Print where the merged model is; 0 once its logits agree."""
    from launcher.export.mergeable import require_mergeable
    from launcher.export.new_folder import place_for

    source = Path(args.run)
    require_mergeable(source)  # before torch is imported, and the base is loaded
    command = f"launcher merge {shlex.quote(args.run)}"
    place = place_for(args.out or str(source / "merged"), option="--out", command=command)
    from launcher.export.merge import merge

    done = merge(source, place)
    print(f"merged into {done.folder}; reloaded, its logits differ by {done.difference:.1e} of their size")
    return 0
