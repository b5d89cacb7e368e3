"""`launcher check`: every problem of one or several recipes at once, without importing torch."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.process.own_files import OwnFiles
    from launcher.recipe.check import Findings

SUMMARY = "find every problem of recipes, at once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Recipes and overrides in any order: what holds a `=` is a setting."""
    parser.add_argument(
        "recipes", nargs="*", metavar="NAME|FILE|KEY=VALUE", help="recipes and settings; default: all shipped"
    )
    parser.add_argument("--json", action="store_true", help="one JSON list on standard output")
    parser.add_argument("--ds", metavar="FILE", help="one's own DeepSpeed JSON, held against the recipes")
    parser.add_argument("--config_file", metavar="FILE", help="one's own Accelerate YAML, likewise")
    parser.add_argument("--gpus", type=int, default=None, help="processes that the files are meant for")


def run(args: argparse.Namespace) -> int:
    """Check; 0 when all are good, 1 when only data is missing, 2 when a recipe or a file cannot be used."""
    overrides = [word for word in args.recipes if "=" in word]
    recipes = [word for word in args.recipes if "=" not in word]
    findings = _of_files(args, recipes, overrides) if args.ds or args.config_file else _of(recipes, overrides)
    if args.json:
        print(json.dumps([as_json(each) for each in findings], indent=2, ensure_ascii=False))
    else:
        for each in findings:
            tell(each)
    return max((exit_code(each) for each in findings), default=0)


def _of(recipes: Sequence[str], overrides: Sequence[str]) -> "list[Findings]":
    """The recipes by themselves; all shipped ones where none is named."""
    from launcher.recipe.check import check_all
    from launcher.recipe.library import names

    return list(check_all(recipes or names(), overrides))


def _of_files(args: argparse.Namespace, recipes: Sequence[str], overrides: Sequence[str]) -> "list[Findings]":
    """The person's files first; the recipes that were named, by themselves and against the files."""
    from launcher.errors import LauncherError
    from launcher.process.own_files import read_own_files
    from launcher.recipe.check import Findings

    name = " with ".join(each for each in (args.config_file, args.ds) if each)
    own = _of(recipes, overrides) if recipes else []
    try:
        files = read_own_files(args.ds, args.config_file)
    except LauncherError as error:
        return [Findings(name=name, problems=tuple(error.problems)), *own]
    if args.gpus is not None:
        files = replace(files, num_processes=args.gpus)
    return [Findings(name=name, notices=files.notices), *(_against(each, files, overrides) for each in own)]


def _against(findings: "Findings", files: "OwnFiles", overrides: Sequence[str]) -> "Findings":
    """The findings with what the files contradict; a recipe that does not load is left at that."""
    from launcher.errors import LauncherError
    from launcher.facts import RunArguments
    from launcher.process.own_files import agree
    from launcher.recipe.load import load_recipe

    if findings.problems and not findings.only_data:
        return findings
    count = files.num_processes or load_recipe(findings.name, overrides).recipe.hardware.gpus
    try:
        agree(RunArguments(recipe=findings.name, overrides=tuple(overrides)), files, count)
    except LauncherError as error:
        return replace(findings, problems=(*findings.problems, *error.problems), only_data=False)
    return findings


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
