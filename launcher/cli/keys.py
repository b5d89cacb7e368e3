"""`launcher keys [PATTERN]`: what a recipe may say, from the option models themselves."""

import argparse
import json
import sys

SUMMARY = "look up the keys of a recipe: values, defaults, what for"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A text to look for, and the form."""
    parser.add_argument(
        "pattern", nargs="?", default="", help="part of a key, of another tool's name, or a word"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json-schema", action="store_true", help="the JSON schema for editors")
    form.add_argument("--markdown", action="store_true", help="the manual's page of all keys")


def run(args: argparse.Namespace) -> int:
    """Print the keys that hold the pattern; 1 where none does."""
    from launcher.recipe.reference import Key, keys, matching

    if args.json_schema:
        from launcher.recipe.json_schema import schema

        print(json.dumps(schema(), indent=2, ensure_ascii=False))
        return 0
    if args.markdown:
        from launcher.recipe.reference_page import markdown

        print(markdown(), end="")
        return 0

    def told(key: Key) -> str:
        pieces = f"  (of {', '.join(key.pieces)})" if key.pieces else ""
        also = f"\n    also: {', '.join(key.also)}" if key.also else ""
        return (
            f"{key.name}: {key.takes.replace('`', '')}  [{key.default}]{pieces}\n    {key.description}{also}"
        )

    found = matching(args.pattern) if args.pattern else keys()
    print("\n".join(told(key) for key in found), end="\n" if found else "")
    if not found:
        typed = args.pattern.replace("-", "_").rpartition(".")[2].lower()
        hint = _hint(typed, [key.path[-1] for key in keys()])
        print(f"no key holds '{args.pattern}'{hint}", file=sys.stderr)
    return 0 if found else 1


def _hint(typed: str, names: list[str]) -> str:
    """What stands in the place of another tool's name, or the nearest of ours."""
    from launcher.recipe.aliases import ACCUMULATION, NOT_NEEDED, REFUSED
    from launcher.registry import nearest

    if typed in ACCUMULATION:
        return ": accumulation is solved from training.global_batch_size and the cards found"
    if typed in REFUSED:
        return f": {REFUSED[typed].why}; {REFUSED[typed].right}"
    if typed in NOT_NEEDED:
        return ": it needs no saying here"
    close = nearest(typed, names)
    return f": did you mean {close}?" if close else ""
