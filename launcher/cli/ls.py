"""`launcher ls`: the shipped recipes, one line each, by task and method; words and options narrow it."""

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.recipe.listing import Listed

SUMMARY = "list the shipped recipes; --gpu, --method, --task or words narrow the list"
_ORDER = ("full", "lora", "qlora")
_TASKS = {"classification": "classifiers", "causal_lm": "language models"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What narrows the list; `--json` for programs."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="words of name, summary or model")
    parser.add_argument("--gpu", metavar="CARD", help="for this card: rtx3090, or a part of it such as 3090")
    parser.add_argument("--gpus", type=int, metavar="N", help="for so many cards")
    parser.add_argument("--method", metavar="NAME", help="full, lora, qlora, p_tuning, ...")
    parser.add_argument("--task", metavar="NAME", help="classification or causal_lm")
    parser.add_argument("--backend", metavar="NAME", help="single_gpu, zero3, fsdp2, ...")
    parser.add_argument("--json", action="store_true", help="one JSON list")


def run(args: argparse.Namespace) -> int:
    """Print name, method, card, planned memory and summary; 1 where the filter leaves nothing."""
    from launcher.errors import EXIT_FAILED
    from launcher.recipe.listing import listed

    everything = listed()
    rows = [each for each in everything if fits(each, args)]
    if args.json:
        print(json.dumps([asdict(each) for each in rows], indent=2, ensure_ascii=False))
    elif rows:
        _print(sorted(rows, key=_place))
    if not rows:
        print(_nothing(everything), file=sys.stderr)
    return 0 if rows else EXIT_FAILED


def fits(row: "Listed", args: argparse.Namespace) -> bool:
    """Whether a recipe is what the words and options ask for."""
    said = f"{row.name} {row.summary} {row.model}".lower()
    asked = ((args.method, row.method), (args.task, row.task), (args.backend, row.backend))
    return (
        all(word.lower() in said for word in args.words)
        and all(want is None or want.lower() == has for want, has in asked)
        and (args.gpu is None or _bare(args.gpu) in _bare(row.gpu))
        and args.gpus in (None, row.gpus)
    )


def _bare(card: str) -> str:
    """A card's name as people write it: letters and digits alone."""
    return "".join(each for each in card.lower() if each.isalnum())


def _place(row: "Listed") -> tuple[int, int, str, str]:
    task = [*_TASKS].index(row.task) if row.task in _TASKS else len(_TASKS)
    method = _ORDER.index(row.method) if row.method in _ORDER else len(_ORDER)
    return task, method, row.method if method == len(_ORDER) else "", row.name


def _print(rows: "list[Listed]") -> None:
    """Rows are results; the headings between them are for people, on standard error."""
    lines = {row.name: (row.name, row.card, _memory(row)) for row in rows}
    widths = [max(len(line[column]) for line in lines.values()) for column in range(3)]
    room = shutil.get_terminal_size().columns - 1 if sys.stdout.isatty() else 0
    with_headings = sys.stdout.isatty() and sys.stderr.isatty()
    for (task, method), group in groupby(rows, key=lambda row: (row.task, row.method)):
        if with_headings:
            print(f"\n{_TASKS.get(task, task)}, {method}", file=sys.stderr, flush=True)
        for row in group:
            columns = [f"{text:{width}}" for text, width in zip(lines[row.name], widths, strict=True)]
            print(_cut("  ".join([*columns, row.summary]), room), flush=with_headings)


def _cut(line: str, room: int) -> str:
    return line if not room or len(line) <= room else f"{line[: max(1, room - 1)]}…"


def _memory(row: "Listed") -> str:
    return "" if row.peak_gib is None else f"{row.peak_gib:.1f} GiB"


def _nothing(rows: "list[Listed]") -> str:
    cards, methods = sorted({row.gpu for row in rows}), sorted({row.method for row in rows})
    return (
        f"no shipped recipe is like that; cards: {', '.join(cards)}; methods: {', '.join(methods)}\n"
        "type: launcher ls, or let one be written: launcher advise --help"
    )
