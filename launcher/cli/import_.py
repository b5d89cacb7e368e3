"""`launcher import FILE`: another tool's file as a recipe, and the list of what could not be carried over."""

import argparse
import sys
from pathlib import Path

SUMMARY = "turn a file of another tool into a recipe, and list what could not be carried over"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, settings laid over it, and what it does not say itself."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="TrainingArguments (JSON, YAML, Python, a command in a script), DeepSpeed JSON, "
        "Accelerate YAML, "
        "LLaMA-Factory or Axolotl YAML",
    )
    parser.add_argument(
        "overrides", nargs="*", metavar="KEY=VALUE", help="settings laid over what the file says"
    )
    parser.add_argument("--out", type=Path, metavar="RECIPE", help="write there instead of standard output")
    parser.add_argument(
        "--from", dest="dialect", metavar="TOOL", help="whose file it is; default: by its keys"
    )
    parser.add_argument("--gpus", type=int, metavar="N", help="processes that the file was started with")
    parser.add_argument("--json", action="store_true", help="values and list as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print or write the recipe; the list goes to standard error."""
    from launcher.errors import BadValue, Problem
    from launcher.recipe.importing.importer import import_file
    from launcher.recipe.importing.text import recipe_text, report

    if args.gpus is not None and args.gpus < 1:
        raise BadValue(
            Problem(where="--gpus", what=f"{args.gpus} is too few", right="1 or more", type="--gpus 1")
        )
    imported = import_file(args.file, dialect=args.dialect, gpus=args.gpus, overrides=args.overrides)
    text = recipe_text(imported)
    if args.out is not None:
        _write(args.out, text)
    print(report(imported), file=sys.stderr)
    name = str(args.out) if args.out else "FILE.yaml"
    print(f"next: launcher check {name}; launcher plan {name}; launcher rehearse {name}", file=sys.stderr)
    if args.json:
        _print_json(imported)
    elif args.out is None:
        print(text, end="")
    return 0


def _print_json(imported: object) -> None:
    import json
    from dataclasses import asdict

    from launcher.recipe.importing.importer import Imported

    assert isinstance(imported, Imported)
    plain = {
        "dialect": imported.dialect.name,
        "values": imported.values,
        "carried": [asdict(each) for each in imported.carried],
        "left": [asdict(each) for each in imported.left],
        "quiet": imported.quiet,
        "needless": imported.needless,
        "notes": imported.notes,
        "to_say": imported.to_say,
    }
    print(json.dumps(plain, indent=2, ensure_ascii=False, default=str))


def _write(path: Path, text: str) -> None:
    from launcher.errors import BadValue, Problem

    try:
        file = path.open("x", encoding="utf-8")
    except OSError as error:
        is_there = isinstance(error, FileExistsError)
        raise BadValue(
            Problem(
                where=str(path),
                what="the file is there already" if is_there else f"cannot be written ({error.strerror})",
                right="a new name" if is_there else "a file in a folder that exists",
                type="--out imported.yaml" if path.name != "imported.yaml" else "--out another.yaml",
            )
        ) from error
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)  # half a recipe would look like a whole one
        raise BadValue(
            Problem(
                where=str(path),
                what=f"cannot be written to its end ({error.strerror})",
                right="room on that disk",
                type="--out /another/disk/imported.yaml",
            )
        ) from error
    print(f"written {path}", file=sys.stderr)
