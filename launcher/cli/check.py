"""`launcher check`: every problem of one or several recipes at once, without importing torch."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.recipe.check import Findings

SUMMARY = "find every problem of recipes, at once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Recipes and overrides in any order: what holds a `=` is a setting."""
    parser.add_argument(
        "recipes", nargs="*", metavar="NAME|FILE|KEY=VALUE", help="recipes and settings; default: all shipped"
    )
    parser.add_argument("--json", action="store_true", help="one JSON list on standard output")


def run(args: argparse.Namespace) -> int:
    """Check; 0 when all are good, 1 when only data is missing, 2 when a recipe cannot be used."""
    from launcher.recipe.check import check_all
    from launcher.recipe.library import names

    overrides = [word for word in args.recipes if "=" in word]
    recipes = [word for word in args.recipes if "=" not in word] or names()
    findings = check_all(recipes, overrides)
    if args.json:
        print(json.dumps([as_json(each) for each in findings], indent=2, ensure_ascii=False))
    else:
        for each in findings:
            tell(each)
    return max((exit_code(each) for each in findings), default=0)


def exit_code(findings: "Findings") -> int:
    """What one recipe's findings mean for the caller."""
    from launcher.errors import EXIT_FAILED, EXIT_USAGE

    if not findings.problems:
        return 0
    return EXIT_FAILED if findings.only_data else EXIT_USAGE


def as_json(findings: "Findings") -> dict[str, object]:
    """The findings for programs."""
    return {"ok": not findings.problems, **asdict(findings)}


def tell(findings: "Findings") -> None:
    """The verdict on standard output, what leads to it on standard error."""
    for notice in findings.notices:
        print(f"note: {notice}", file=sys.stderr)
    for problem in findings.problems:
        print(problem.render(), file=sys.stderr)
    sys.stderr.flush()
    number = len(findings.problems)
    verdict = "good" if not number else f"{number} problem{'s' * (number > 1)}"
    print(f"{findings.name}: {verdict}", flush=True)
