"""What may stand behind `run.py`: its own options, and `key=value` for the recipe.

One reader for every starter and for `launcher run`. Not argparse: it would take an unknown option's
value for a positional, and abbreviate. `--key value`, `--key=value` and `key=value` mean the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from launcher.errors import BadValue, Conflict, Problem, UnknownSetting
from launcher.facts import RunArguments
from launcher.registry import nearest

QUICKSTART = "quickstart"
WITH_VALUE = ("recipe", "ds", "backend", "name", "plan", "output_dir")
USAGE = """usage: run.py [--recipe NAME|FILE] [--ds FILE] [--backend NAME] [--name NAME]
              [--resume [auto|PATH] | --new] [--output_dir DIR] [--plan FILE] [--quiet] [key=value ...]

Start it with python, accelerate launch, torchrun or deepspeed. Without --recipe: quickstart.
`key=value`, `--key value` and `--key=value` override the recipe; `launcher cat NAME` shows its keys."""


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The options that a command knows; `names_recipe` lets a bare word be the recipe.

    `repeated` are options with a value that may come several times.
    """

    with_value: tuple[str, ...] = WITH_VALUE
    flags: tuple[str, ...] = ("new",)
    repeated: tuple[str, ...] = ()
    names_recipe: bool = False
    usage: str = USAGE


@dataclass
class Reader:
    """The words still to read, and what was found so far; `typed` are all words as they were given."""

    words: list[str]
    grammar: Grammar
    options: dict[str, str] = field(default_factory=dict)
    overrides: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    repeated: dict[str, list[str]] = field(default_factory=dict)
    typed: tuple[str, ...] = ()


class HelpWanted(Exception):  # noqa: N818 (not an error: a person asked)
    """Raised for `--help`; its text is the usage."""


def parse(argv: Sequence[str]) -> RunArguments:
    """The words after `run.py` as RunArguments. Raises RecipeError for what cannot be meant."""
    return run_arguments(read(argv, Grammar()))


def run_arguments(reader: Reader) -> RunArguments:
    """What was read, without what only `launcher run` knows. Raises BadValue for a name that is a path."""
    _require_plain_name(reader.options.get("name"))
    return RunArguments(
        recipe=reader.options.get("recipe", QUICKSTART),
        recipe_was_given="recipe" in reader.options,
        ds=reader.options.get("ds"),
        backend=reader.options.get("backend"),
        name=reader.options.get("name"),
        resume=reader.options.get("resume"),
        new="new" in reader.flags,
        plan=reader.options.get("plan"),
        output_dir=reader.options.get("output_dir"),
        overrides=tuple(reader.overrides),
    )


def _require_plain_name(name: str | None) -> None:
    """A run's name becomes one folder of output_dir, and none above it."""
    if name is None or (name.strip(". ") and name.isprintable() and not {"/", "\\"} & {*name}):
        return
    raise BadValue(
        Problem(
            where="--name",
            what=f"{name!r} is a path, or no name",
            right="one folder's name; the folder around it is output_dir",
            type="--name my_run --output_dir DIR",
        )
    )


def read(argv: Sequence[str], grammar: Grammar) -> Reader:
    """The words sorted into options, flags and overrides. Raises HelpWanted for `--help`."""
    reader = Reader(list(argv), grammar, typed=tuple(argv))
    while reader.words:
        _read_word(reader, reader.words.pop(0))
    if "new" in reader.flags and "resume" in reader.options:
        raise Conflict(
            Problem(
                what="--resume and --new were both given",
                right="--resume continues the run in its folder, --new starts over",
                type="one of the two",
            )
        )
    return reader


def _read_word(reader: Reader, word: str) -> None:
    if word in ("-h", "--help"):
        raise HelpWanted(reader.grammar.usage)
    if word.startswith("--") and len(word) > 2:
        name, equals, value = word[2:].partition("=")
        _read_option(reader, name.replace("-", "_"), value if equals else None)
    elif "=" in word and not word.startswith(("-", "=")):
        reader.overrides.append(word)
    elif reader.grammar.names_recipe and not word.startswith("-") and "recipe" not in reader.options:
        reader.options["recipe"] = word
    else:
        raise _stray(word, reader)


def _read_option(reader: Reader, name: str, value: str | None) -> None:
    if name == "local_rank":  # torchrun's and deepspeed's; LOCAL_RANK in the environment says the same
        _value(reader, name, value)
    elif name in reader.grammar.flags and value is None:
        reader.flags.add(name)
    elif name == "quiet" and value is None:
        reader.overrides.append("tracking.progress=quiet")
    elif name == "resume":
        reader.options["resume"] = _optional_value(reader, value, default="auto")
    elif name in reader.grammar.with_value:
        reader.options[name] = _value(reader, name, value)
    elif name in reader.grammar.repeated:
        reader.repeated.setdefault(name, []).append(_value(reader, name, value))
    else:
        _refuse_misspelt(name, reader.grammar)
        if value is None and (not reader.words or reader.words[0].startswith("--")):
            _refuse_unknown_flag(name, reader.grammar)
        reader.overrides.append(f"{name}={_value(reader, name, value)}")


def _value(reader: Reader, name: str, value: str | None) -> str:
    if value is not None:
        return value
    if reader.words and not reader.words[0].startswith("--"):
        return reader.words.pop(0)
    raise BadValue(
        Problem(what=f"--{name} needs a value", right="a value behind the name", type=f"--{name} VALUE")
    )


def _optional_value(reader: Reader, value: str | None, default: str) -> str:
    if value is not None:
        return value
    if reader.words and not reader.words[0].startswith("-") and "=" not in reader.words[0]:
        return reader.words.pop(0)
    return default


def _refuse_misspelt(name: str, grammar: Grammar) -> None:
    """An option of ours with a slip, told apart from a recipe's key by knowing the recipe's keys."""
    close = nearest(name, (*grammar.with_value, *grammar.flags, "resume"))
    if close is None or "." in name or not _is_slip(name, close) or name in _recipe_keys():
        return
    raise UnknownSetting(
        Problem(
            what=f"unknown option --{name}",
            right=f"did you mean --{close}?",
            type=f"--{close}",
        )
    )


def _refuse_unknown_flag(name: str, grammar: Grammar) -> None:
    """A word without a value that is neither ours nor a key of a recipe: no value would help."""
    if name.rpartition(".")[2] in _recipe_keys() or "." in name:
        return
    options = [*grammar.with_value, *grammar.repeated, *grammar.flags, "resume", "quiet"]
    close = nearest(name, options)
    raise UnknownSetting(
        Problem(
            what=f"unknown option --{name}",
            right=f"one of: {', '.join(f'--{each}' for each in options)}; or a recipe's key and its value",
            type=f"--{close}" if close else "--help",
        )
    )


def _is_slip(name: str, close: str) -> bool:
    """The same letters in another order, or one letter more or less."""
    if sorted(name) == sorted(close):
        return True
    shorter, longer = sorted((name, close), key=len)
    if len(shorter) == len(longer):
        return sum(a != b for a, b in zip(name, close, strict=True)) == 1
    cuts = (longer[:index] + longer[index + 1 :] for index in range(len(longer)))
    return len(longer) == len(shorter) + 1 and shorter in cuts


def _recipe_keys() -> frozenset[str]:
    """Leaf names of the recipe; the schema is loaded only when a slip is suspected."""
    from launcher.options import Options
    from launcher.recipe.schema import Recipe

    names: set[str] = set(Recipe.model_fields)
    for item in Recipe.model_fields.values():
        if isinstance(item.annotation, type) and issubclass(item.annotation, Options):
            names |= set(item.annotation.model_fields)
    return frozenset(names)


def _stray(word: str, reader: Reader) -> UnknownSetting:
    type_instead = f"key={word}" if "recipe" in reader.options else f"--recipe {word}"
    return UnknownSetting(
        Problem(
            what=f"'{word}' is neither an option nor key=value",
            right="a recipe is named with --recipe, a setting as key=value",
            type=type_instead,
        )
    )
