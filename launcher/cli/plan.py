"""`launcher plan RECIPE`: memory, host RAM, disk, time and cost on a card that need not be here."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.cli._recipe_words import num_cards, recipe_named
from launcher.errors import (
    EXIT_CANNOT_TELL,
    EXIT_FAILED,
    EXIT_USAGE,
    BadValue,
    CannotTell,
    LauncherError,
    Problem,
)
from launcher.process.arguments import Grammar, Reader

if TYPE_CHECKING:
    from launcher.plan.forecast import Forecast
    from launcher.plan.sweep import Point
    from launcher.recipe.load import LoadedRecipe

SUMMARY = "what a recipe needs on a card: memory, time, disk, cost; and what fits"
USAGE = """usage: launcher plan RECIPE [--gpu CARD] [--gpus N] [--backend NAME] [--rows N]
                     [--host-memory 90GiB] [--prices FILE] [--ask-hub] [--trace] [--json]
                     [--png FILE | --svg FILE] [--sweep gpu=CARD,CARD gpus=1,2,4] [key=value ...]

--gpu CARD     a name of launcher/hardware/gpus.csv; --gpus N: processes, one a card
--rows N       training rows, where the file is not here: time and cost of the run
--host-memory  main memory of the planned machine, e.g. 90GiB: going over it is a verdict then
--prices FILE  a CSV gpu,price_per_h,currency,date (or the variable LAUNCHER_PRICES)
--ask-hub      fetch an unknown model's config.json from the hub
--trace        run the real step on tensors without values (seconds, needs torch): checks the estimate,
               and plans an architecture that it does not know
--sweep        a table over gpu, gpus and backend

exit code: 0 fits, 1 does not fit, 2 something given is wrong, 3 cannot tell"""
GRAMMAR = Grammar(
    with_value=("recipe", "gpu", "gpus", "backend", "rows", "host_memory", "prices", "png", "svg", "sweep"),
    flags=("json", "ask_hub", "trace"),
    names_recipe=True,
    usage=USAGE,
)


def run(reader: Reader) -> int:
    """Print the plan; the exit code says whether it fits."""
    recipe_named(reader, example="launcher plan lora_7b_3090")
    return _sweep(reader) if "sweep" in reader.options else _one(reader)


def _one(reader: Reader) -> int:
    from launcher.plan.sweep import Point

    try:
        answer = _answer(reader, Point())
    except CannotTell:
        if "trace" not in reader.flags:
            raise
        return _traced(reader)
    if "json" in reader.flags:
        from launcher.plan.as_json import as_json

        print(json.dumps(as_json(answer) | _trace_json(reader, answer), indent=2, ensure_ascii=False))
    else:
        from launcher.plan.tell import text

        for notice in answer.notices:
            print(f"note: {notice}", file=sys.stderr)
        print(text(answer), flush=True)
        _trace_line(reader, answer)
    _draw(reader, answer)
    return 0 if answer.fits else EXIT_FAILED


def _trace_json(reader: Reader, answer: "Forecast") -> dict[str, Any]:
    if "trace" not in reader.flags:
        return {}
    from launcher.plan.traced import trace_shown

    return {"trace_peak_bytes": trace_shown(answer.recipe, answer.shown).peak_bytes}


def _trace_line(reader: Reader, answer: "Forecast") -> None:
    if "trace" not in reader.flags:
        return
    from launcher.plan.traced import compared, trace_shown

    print(compared(answer.shown, trace_shown(answer.recipe, answer.shown)))


def _traced(reader: Reader) -> int:
    """An architecture without a closed form: the recipe as asked, by trace alone."""
    from launcher.hardware.catalog import get
    from launcher.plan.traced import as_json, lines, plan_by_trace

    loaded = _loaded(reader, gpu=reader.options.get("gpu"), backend=reader.options.get("backend"))
    if loaded.recipe.hardware.gpu is None:
        raise BadValue(
            Problem(where="--gpu", what="no card is named", right="a card to plan for", type="--gpu rtx3090")
        )
    answer = plan_by_trace(loaded, get(loaded.recipe.hardware.gpu), ask_hub="ask_hub" in reader.flags)
    if "json" in reader.flags:
        print(json.dumps(as_json(answer), indent=2, ensure_ascii=False))
    else:
        print("\n".join(lines(answer)))
    return 0 if answer.verdict.fits else EXIT_FAILED


def _loaded(
    reader: Reader, *, gpu: str | None = None, gpus: int | None = None, backend: str | None = None
) -> "LoadedRecipe":
    """The recipe with what the options and the sweep's point say instead."""
    from launcher.backends.options import BACKENDS
    from launcher.plan.sweep import card_name
    from launcher.recipe.load import load_recipe

    options = reader.options
    extra: dict[str, Any] = {}
    if gpu is not None:
        extra |= {"hardware.gpu": card_name(gpu, "--gpu"), "hardware.device": "cuda"}
    if (cards := gpus or num_cards(reader)) is not None:
        extra["hardware.gpus"] = cards
    if backend is not None:
        extra["backend.name"] = BACKENDS.get(backend, "--backend").name
    return load_recipe(options["recipe"], reader.overrides, extra=extra)


def _answer(reader: Reader, point: "Point") -> "Forecast":
    from launcher.plan.forecast import Question, forecast

    options = reader.options
    loaded = _loaded(
        reader,
        gpu=point.gpu or options.get("gpu"),
        gpus=point.gpus,
        backend=point.backend or options.get("backend"),
    )
    return forecast(
        Question(
            loaded=loaded,
            host_bytes=num_bytes(options["host_memory"]) if "host_memory" in options else None,
            rows=count(options["rows"], "--rows") if "rows" in options else None,
            prices=Path(options["prices"]).expanduser() if "prices" in options else None,
            ask_hub="ask_hub" in reader.flags,
        )
    )


def count(text: str, where: str) -> int:
    """A whole number from 1. Raises BadValue."""
    if text.replace("_", "").replace(",", "").isdigit() and int(text.replace(",", "")) > 0:
        return int(text.replace(",", ""))
    raise BadValue(
        Problem(
            where=where, what=f"'{text}' is no number", right="a whole number from 1", type=f"{where} 1000"
        )
    )


def num_bytes(text: str) -> int:
    """`90GiB`, `90GB`, `90G` (GiB) or bytes. Raises BadValue."""
    import re

    units = {"": 1, "g": 2**30, "gib": 2**30, "gb": 10**9, "m": 2**20, "mib": 2**20, "mb": 10**6}
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", text.lower())
    if match and match.group(2) in units and float(match.group(1)) > 0:
        return int(float(match.group(1)) * units[match.group(2)])
    raise BadValue(
        Problem(
            where="--host-memory",
            what=f"'{text}' is no size",
            right="a number with GiB or GB",
            type="--host-memory 90GiB",
        )
    )


def _draw(reader: Reader, answer: "Forecast") -> None:
    from launcher.plan.tell import verdict

    title, shown = verdict(answer)[0], answer.shown
    if "svg" in reader.options:
        from launcher.plan.picture import svg_text

        path = Path(reader.options["svg"])
        _write(path, lambda: path.write_text(svg_text(shown.breakdown, answer.usable_bytes, title=title)))
    if "png" in reader.options:
        from launcher.plan.picture import write_png

        path = Path(reader.options["png"])
        _write(path, lambda: write_png(path, shown.breakdown, answer.usable_bytes, title=title))


def _write(path: Path, draw: Any) -> None:
    try:
        draw()
    except OSError as error:
        raise BadValue(
            Problem(
                where=str(path),
                what=f"the picture cannot be written ({error.strerror})",
                right="a file in a folder that exists",
                type="--svg plan.svg",
            )
        ) from error
    print(f"drawn {path}", file=sys.stderr)


def _sweep(reader: Reader) -> int:
    """A line a combination; one that is refused says why. The exit code is the best line's."""
    from launcher.plan.sweep import KEYS, read_sweep

    is_axis = [word.partition("=")[0] in KEYS for word in reader.overrides]
    more = [word for word, axis in zip(reader.overrides, is_axis, strict=True) if axis]
    reader.overrides = [word for word, axis in zip(reader.overrides, is_axis, strict=True) if not axis]
    rows: list[tuple[Point, Forecast | None, LauncherError | None]] = []
    for point in read_sweep([reader.options["sweep"], *more]):
        try:
            rows.append((point, _answer(reader, point), None))
        except LauncherError as error:
            rows.append((point, None, error))
    print(_sweep_json(rows) if "json" in reader.flags else _sweep_text(reader, rows))
    return min(_code(answer, error) for _, answer, error in rows)


def _code(answer: "Forecast | None", error: LauncherError | None) -> int:
    if answer is not None:
        return 0 if answer.fits else EXIT_FAILED
    return EXIT_CANNOT_TELL if error and error.exit_code == EXIT_CANNOT_TELL else EXIT_USAGE


def _sweep_json(rows: list[Any]) -> str:
    from launcher.plan.as_json import as_json

    found = [
        as_json(answer) if answer else {**vars(point), "fits": None, "error": str(error)}
        for point, answer, error in rows
    ]
    return json.dumps(found, indent=2, ensure_ascii=False)


def _sweep_text(reader: Reader, rows: list[Any]) -> str:
    from launcher.plan.sweep_table import table

    return "\n".join(table(reader.options["recipe"], rows))
