"""The `launcher` command: finds the verb's module in this folder, and turns errors into exit codes.

A verb is a module beside this one with `SUMMARY` and one of two shapes: `add_arguments(parser)` and
`run(args) -> int`, or, where `key=value` of a recipe may be typed, `GRAMMAR` and `run(reader) -> int`. One
that Python has reserved carries a `_` behind it, as in import_.py; a file that begins with `_` is no verb.
Only the verb that was typed is imported.
"""

import argparse
import importlib
import io
import keyword
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from launcher import __version__
from launcher.errors import EXIT_FAILED, LauncherError, Problem, UnknownSetting

EXIT_INTERRUPTED = 130
# What people type who come from elsewhere.
OTHER_VERBS = {
    **dict.fromkeys(("lint", "validate", "verify"), "check RECIPE   (your own files: check --ds FILE)"),
    **dict.fromkeys(("train", "start", "launch", "sft", "finetune"), "run RECIPE"),
    **dict.fromkeys(("resume", "continue", "restart"), "run RECIPE --resume"),
    **dict.fromkeys(("list", "recipes"), "ls"),
    **dict.fromkeys(("show", "view", "print"), "cat RECIPE"),
    **dict.fromkeys(("init", "new", "create", "copy"), "cp quickstart mine.yaml"),
    **dict.fromkeys(("estimate", "memory", "fit", "estimate-memory"), "plan RECIPE --gpu CARD"),
    **dict.fromkeys(("evaluate", "test", "score"), "eval RUN --file FILE"),
    **dict.fromkeys(("infer", "inference", "chat", "generate", "ask"), 'predict RUN "TEXT"'),
    **dict.fromkeys(("env", "diagnose", "info", "status"), "doctor RECIPE"),
    **dict.fromkeys(("download", "preprocess", "tokenize", "tokenise"), "prepare RECIPE"),
    **dict.fromkeys(("dryrun", "dry-run", "simulate", "smoke"), "rehearse RECIPE"),
    **dict.fromkeys(("render", "config"), "compile RECIPE --backend NAME --gpus N"),
    **dict.fromkeys(("recommend", "suggest"), "advise --model ID --gpu CARD"),
    **dict.fromkeys(("options", "params", "schema"), "keys PATTERN"),
    **dict.fromkeys(("html", "plot", "logs", "curves"), "report RUN"),
    **dict.fromkeys(("save", "push", "upload", "gguf"), "export RUN --to DIR"),
}
_ORDER = ("ls", "cat", "cp", "check", "data", "plan", "compile", "rehearse", "prepare", "run", "doctor")


def verbs() -> list[str]:
    """The names of all verbs: the daily ones in the order of work, then the others."""
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    known = [name.rstrip("_") for name in names if name != "main" and not name.startswith("_")]
    return sorted(known, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def main(argv: list[str] | None = None) -> int:
    """Run one verb. Errors for people go to stderr as text; the exit code says what kind."""
    arguments = sys.argv[1:] if argv is None else argv
    _say_every_letter()
    try:
        return _dispatch(arguments)
    except LauncherError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`launcher ls | head`); nothing more can be flushed to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if not _advised(error):
            raise
        return EXIT_FAILED


def _advised(error: Exception) -> bool:
    """Whether the error is one of a library's whose remedy is known: then it is told, traceback first."""
    from launcher.process.failures import traceback_of
    from launcher.process.known_errors import advice
    from launcher.redact import redact

    problem = advice(error)
    if problem is not None:
        print(f"{traceback_of(error)}\n{redact(problem.render())}", file=sys.stderr)
    return problem is not None


def _say_every_letter() -> None:
    """Under a locale that knows only ASCII, names and texts of other letters would end in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            is_ascii = stream.encoding.lower() in ("ascii", "ansi_x3.4-1968", "us-ascii", "646")
            stream.reconfigure(encoding="utf-8" if is_ascii else None, errors="backslashreplace")


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    if arguments[0] in ("--version", "-V"):
        print(f"launcher {__version__}")
        return 0
    verb = _verb(arguments[0])
    run_it = _run_on_words if hasattr(verb, "GRAMMAR") else _run_on_options
    code = int(run_it(verb, arguments))
    sys.stdout.flush()
    return code


def _run_on_options(verb: ModuleType, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=f"launcher {arguments[0]}", description=verb.SUMMARY, allow_abbrev=False
    )
    verb.add_arguments(parser)
    words = arguments[1:]
    if "overrides" in (places := {action.dest for action in parser._actions}) or "recipes" in places:
        words = _as_settings(words, {each for action in parser._actions for each in action.option_strings})
    return int(verb.run(parser.parse_intermixed_args(words)))


def _as_settings(words: list[str], known: set[str]) -> list[str]:
    """`--key value` and `--key=value` of the recipe as `key=value`, which these verbs take."""
    found: list[str] = []
    rest = [*words]
    while rest:
        word = rest.pop(0)
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--") or f"--{name}" in known or not _is_a_recipes(name.replace("-", "_")):
            found.append(word)
        elif equals:
            found.append(f"{name.replace('-', '_')}={value}")
        elif rest and not rest[0].startswith("--"):
            found.append(f"{name.replace('-', '_')}={rest.pop(0)}")
        else:
            found.append(word)
    return found


def _is_a_recipes(name: str) -> bool:
    """Whether a recipe has such a key; the schema is loaded only for options that no verb knows."""
    from launcher.recipe.aliases import ALIASES
    from launcher.recipe.keys import ending_with, sections

    return bool(ending_with(tuple(name.split(".")))) or name in ALIASES or name in sections()


def _run_on_words(verb: ModuleType, arguments: list[str]) -> int:
    """Not by argparse, which would refuse a recipe's own `--key value`."""
    from launcher.process.arguments import HelpWanted, read

    try:
        reader = read(arguments[1:], verb.GRAMMAR)
    except HelpWanted as usage:
        print(usage)
        return 0
    return int(verb.run(reader))


def _verb(name: str) -> ModuleType:
    if name in verbs():
        return module_of(name)
    from launcher.registry import nearest  # difflib is only worth its time on a mistake

    raise UnknownSetting(
        Problem(
            what=f"unknown verb '{name}'",
            right=f"one of: {', '.join(verbs())}",
            type=f"launcher {OTHER_VERBS.get(name.lower()) or nearest(name, verbs()) or '--help'}",
        )
    )


def module_of(verb: str) -> ModuleType:
    """The verb's module."""
    return importlib.import_module(f"launcher.cli.{verb}{'_' * keyword.iskeyword(verb)}")


def overview() -> str:
    """The help: every verb with its summary."""
    modules = {name: module_of(name) for name in verbs()}
    width = max(map(len, modules), default=0)
    lines = [f"  {name:{width}}  {module.SUMMARY}" for name, module in modules.items()]
    return "\n".join(
        [
            "usage: launcher VERB ...",
            "",
            "One fine-tuning recipe, compiled to Accelerate or DeepSpeed, on one card or many.",
            "",
            *lines,
            "",
            "launcher VERB --help tells more about one verb. Start with: launcher ls",
        ]
    )
