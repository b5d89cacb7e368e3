"""`launcher ls`: the shipped recipes, one line each."""

import argparse
import json

SUMMARY = "list the shipped recipes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--json` for programs."""
    parser.add_argument("--json", action="store_true", help="one JSON list")


def run(args: argparse.Namespace) -> int:
    """Print name, task, method, card and summary of every shipped recipe."""
    from launcher.recipe.library import names

    rows = [row(name) for name in names()]
    if args.json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    columns = ("name", "task", "method", "gpu", "summary")
    widths = {column: max((len(each[column]) for each in rows), default=0) for column in columns[:-1]}
    for each in rows:
        print("  ".join([*(f"{each[column]:{widths[column]}}" for column in columns[:-1]), each["summary"]]))
    return 0


def row(name: str) -> dict[str, str]:
    """What a line says about one recipe; a recipe that cannot be used says so."""
    from launcher.errors import LauncherError
    from launcher.recipe.load import load_recipe

    try:
        recipe = load_recipe(name).recipe
    except LauncherError as error:
        summary = f"cannot be used: launcher check {name} ({len(error.problems)} problems)"
        return {"name": name, "task": "?", "method": "?", "gpu": "?", "summary": summary}
    return {
        "name": name,
        "task": recipe.task,
        "method": recipe.adapter.method,
        "gpu": recipe.hardware.gpu or "any",
        "summary": recipe.summary,
    }
