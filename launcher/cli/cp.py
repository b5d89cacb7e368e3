"""`launcher cp NAME FILE`: a copy of a recipe to edit, which works from its new place."""

import argparse
from pathlib import Path

SUMMARY = "copy a recipe to a file of your own"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """From where, and to where."""
    parser.add_argument("recipe", metavar="NAME|FILE", help="a shipped recipe or a file")
    parser.add_argument("file", metavar="FILE", type=Path, help="the new file, or a folder for it")


def run(args: argparse.Namespace) -> int:
    """Write the copy, say what to type next. Nothing is overwritten."""
    import shlex

    from launcher.recipe.copying import copy_recipe
    from launcher.recipe.provenance import shown

    target = copy_recipe(args.recipe, args.file)
    print(f"{shown(target)}: edit it, then type: launcher check {shlex.quote(shown(target))}")
    return 0
