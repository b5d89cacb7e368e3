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
    if args.provenance:
        print(provenance(args.recipe, args.overrides))
    elif args.resolved or args.overrides:
        print(resolved(args.recipe, args.overrides), end="")
    else:
        print(as_written(args.recipe), end="")
    return 0


def as_written(name_or_file: str) -> str:
    """The file's own text."""
    from launcher.recipe.document import read_text
    from launcher.recipe.library import find

    text = read_text(find(name_or_file))
    return text if text.endswith("\n") else f"{text}\n"


def resolved(name_or_file: str, overrides: list[str]) -> str:
    """The whole recipe, defaults included, as one file that needs no parent."""
    from launcher.recipe.dump import to_yaml
    from launcher.recipe.load import load_recipe

    return to_yaml(load_recipe(name_or_file, overrides).recipe)


def provenance(name_or_file: str, overrides: list[str]) -> str:
    """One line for each value, with its origin behind it, and the notices at the end."""
    from launcher.recipe.build import value_at
    from launcher.recipe.dump import written
    from launcher.recipe.load import load_recipe

    loaded = load_recipe(name_or_file, overrides)
    values = {key: written(plain(value_at(loaded.recipe, tuple(key.split("."))))) for key in loaded.origins}
    lines = {key: f"{key}: {value}" for key, value in values.items()}
    width = max(len(line) for line in lines.values() if len(line) < 70)
    told = [f"{lines[key]:{width}}  # {origin}" for key, origin in loaded.origins.items()]
    return "\n".join([*told, *(f"# note: {notice}" for notice in loaded.notices)])


def plain(value: object) -> object:
    """An interval as it is typed; other values as they are."""
    return value if isinstance(value, str | int | float | list | tuple | dict | None) else str(value)
