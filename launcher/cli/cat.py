"""`launcher cat NAME`: a recipe as written, or every resolved value with its origin."""

import argparse

SUMMARY = "print a recipe; --provenance: every value and where it comes from"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A recipe, overrides, and how much to tell."""
    parser.add_argument("recipe", metavar="NAME|FILE", help="a shipped recipe or a file")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings laid over the recipe")
    parser.add_argument("--provenance", action="store_true", help="every value with its origin")
    parser.add_argument("--resolved", action="store_true", help="the whole recipe with parents and defaults")


def run(args: argparse.Namespace) -> int:
    """Print the file's text; with overrides or a flag, the resolved recipe."""
    from launcher.recipe.document import read_text
    from launcher.recipe.dump import to_yaml
    from launcher.recipe.library import find
    from launcher.recipe.load import load_recipe

    if not (args.provenance or args.resolved or args.overrides):
        print(read_text(find(args.recipe)), end="")
        return 0
    loaded = load_recipe(args.recipe, args.overrides)
    if not args.provenance:
        print(to_yaml(loaded.recipe), end="")
        return 0
    from launcher.recipe.build import value_at
    from launcher.recipe.dump import written

    values = {key: written(plain(value_at(loaded.recipe, tuple(key.split("."))))) for key in loaded.origins}
    width = max(len(f"{key}: {value}") for key, value in values.items() if len(value) < 60)
    for key, origin in loaded.origins.items():
        print(f"{f'{key}: {values[key]}':{width}}  # {origin}")
    return 0


def plain(value: object) -> object:
    """An interval as it is typed; other values as they are."""
    return value if isinstance(value, str | int | float | list | tuple | dict | None) else str(value)
