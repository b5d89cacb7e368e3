"""`launcher doctor [RECIPE]`: this machine, and this recipe on it; what is found, needed, and to type."""

import json
import os
import sys
from typing import TYPE_CHECKING

from launcher.cli._recipe_words import recipe_settings
from launcher.errors import EXIT_FAILED
from launcher.process.arguments import Grammar, Reader

if TYPE_CHECKING:
    from launcher.doctor.patient import Patient

SUMMARY = "this machine, and a recipe on it: what is found, what is needed, what to type"
USAGE = """usage: launcher doctor [RECIPE] [--gpus N] [--backend NAME] [--json] [--fix] [key=value ...]

Looks at driver, torch, cards, container, disks, network and environment; with a recipe, also whether its
model, data and memory plan are good on this machine. Seconds; nothing is loaded, nothing is changed.

--json  one object: ok, findings (check, status, found, needed, type), fixed
--fix   first mend what can be mended safely, and say what was done: a file with the cache variables,
        locks that a killed compilation left, links for TensorBoard's panel

exit code: 0 good (notes are good), 1 something would fail, 2 something given is wrong"""
GRAMMAR = Grammar(
    with_value=("recipe", "gpus", "backend"), flags=("json", "fix"), names_recipe=True, usage=USAGE
)


def run(reader: Reader) -> int:
    """Examine, and mend where asked to; the exit code says whether anything would fail."""
    from launcher.doctor.examine import as_json, examine, fix, is_good, lines

    patient = _patient(reader)
    fixed = list(fix(patient)) if "fix" in reader.flags else []
    examined = []
    for line in fixed:
        print(f"fixed: {line}", file=sys.stderr)
    for each in examine(patient):
        examined.append(each)
        if "json" not in reader.flags:
            print("\n".join(lines(each)), flush=True)
    if "json" in reader.flags:
        print(json.dumps(as_json(examined, fixed), indent=2, ensure_ascii=False))
    return 0 if is_good(examined) else EXIT_FAILED


def _patient(reader: Reader) -> "Patient":
    from launcher.doctor.examine import admit, settle
    from launcher.recipe.load import load_recipe

    settled = settle(os.environ)
    loaded = None
    if "recipe" in reader.options:
        loaded = load_recipe(reader.options["recipe"], reader.overrides, extra=recipe_settings(reader))
    return admit(os.environ, loaded, reader.options.get("recipe", "RECIPE"), settled)
