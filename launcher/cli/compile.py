"""`launcher compile RECIPE`: the concrete files for a backend and a card, and the lines that start them."""

import sys
from pathlib import Path

from launcher.cli._recipe_words import num_cards, recipe_named
from launcher.errors import BadValue, Problem
from launcher.plan.choose import plan_lines
from launcher.plan.compile import Wanted, compile_recipe
from launcher.plan.write_files import write_files
from launcher.process.arguments import Grammar, Reader
from launcher.registry import nearest

SUMMARY = "write a recipe's concrete files for Accelerate, DeepSpeed or the Trainer"
TARGETS = ("launcher", "trainer")
USAGE = """usage: launcher compile RECIPE --out DIR [--backend NAME] [--gpus N] [--gpu CARD]
                        [--to trainer] [--force] [key=value ...]

--out DIR      the folder to write: accelerate.yaml, recipe.yaml, command.txt, and ds.json for ZeRO
--backend NAME instead of the recipe's; `launcher matrix` shows them all
--gpus N       processes, one a card; --gpu CARD: a name of launcher/hardware/gpus.csv
--to trainer   training_arguments.py in the place of recipe.yaml, for transformers' Trainer
--force        write over files that differ"""
GRAMMAR = Grammar(
    with_value=("recipe", "backend", "gpus", "gpu", "out", "to"),
    flags=("force",),
    names_recipe=True,
    usage=USAGE,
)


def run(reader: Reader) -> int:
    """Write the files, then say what was decided and what to type."""
    wanted = wanted_by(reader)
    compiled = compile_recipe(wanted)
    for path, state in write_files(wanted.out, compiled.files, force="force" in reader.flags):
        print(f"{state} {path}")
    print("\n".join(plan_lines(compiled.plan)))
    print("\n".join(compiled.commands))
    for notice in compiled.notices:
        print(f"note: {notice}", file=sys.stderr)
    return 0


def wanted_by(reader: Reader) -> Wanted:
    """What was typed. Raises BadValue for a missing recipe or folder, or a number that is none."""
    options = reader.options
    recipe = recipe_named(reader, example="launcher compile quickstart --out compiled")
    if "out" not in options:
        raise BadValue(Problem(what="no folder was named", right="a folder to write", type="--out compiled"))
    return Wanted(
        recipe=recipe,
        out=Path(options["out"]).expanduser(),
        backend=options.get("backend"),
        gpus=num_cards(reader),
        gpu=options.get("gpu"),
        to=_target(options.get("to", "launcher")),
        overrides=tuple(reader.overrides),
    )


def _target(text: str) -> str:
    if text in TARGETS:
        return text
    close = nearest(text, TARGETS) or "trainer"
    raise BadValue(
        Problem(
            where="--to",
            what=f"unknown target '{text}'",
            right=f"one of: {', '.join(TARGETS)}",
            type=f"--to {close}",
        )
    )
