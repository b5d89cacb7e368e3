"""The `launcher` command: finds the verb's module in this folder, and turns errors into exit codes.

A verb is a module beside this one with `SUMMARY` and one of two shapes: `add_arguments(parser)` and
`run(args) -> int`, or, where `key=value` of a recipe may be typed, `GRAMMAR` and `run(reader) -> int`. One
that Python has reserved carries a `_` behind it, as in import_.py; a file that begins with `_` is no verb.
Only the verb that was typed is imported.
"""

import argparse
import importlib
import keyword
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from launcher import __version__
from launcher.errors import LauncherError, Problem, UnknownSetting

EXIT_INTERRUPTED = 130
_ORDER = ("ls", "cat", "cp", "check", "data", "plan", "compile", "rehearse", "prepare", "run", "doctor")


def verbs() -> list[str]:
    """The names of all verbs: the daily ones in the order of work, then the others."""
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    known = [name.rstrip("_") for name in names if name != "main" and not name.startswith("_")]
    return sorted(known, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def main(argv: list[str] | None = None) -> int:
    """Run one verb. Errors for people go to stderr as text; the exit code says what kind."""
    arguments = sys.argv[1:] if argv is None else argv
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
    return int(verb.run(parser.parse_intermixed_args(arguments[1:])))


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
            type=f"launcher {nearest(name, verbs()) or '--help'}",
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
