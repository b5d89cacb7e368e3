"""`launcher data NAME|FILE`: what a recipe's data, or a data file alone, holds, and what is wrong with it."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.errors import RecipeError

if TYPE_CHECKING:
    from launcher.data.survey import Survey
    from launcher.models.options import ModelOptions
    from launcher.recipe.schema import Recipe

SUMMARY = "look at data before it is trained on: rows, labels, lengths, examples, problems"
_RECIPES = (".yaml", ".yml")
_BAR = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A recipe or a data file, settings, and which tokenizer measures."""
    parser.add_argument("name", metavar="NAME|FILE", help="a recipe, or a data file, folder or pattern")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, such as layout=dialogue")
    parser.add_argument("--model", help="model whose tokenizer measures a data file")
    parser.add_argument("--task", choices=("classification", "causal_lm"), help="what a data file is for")
    parser.add_argument("--examples", type=int, default=5, help="how many rows to show")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 when nothing is wrong, 1 when something is."""
    from launcher.data.survey import survey

    recipe, task, has_model = _recipe(args)
    tokenizer, limit, said = (
        _tokenizer(recipe.model, recipe.task, must=bool(args.model)) if has_model else (None, None, "")
    )
    found = survey(recipe.data, task, recipe.training.seed, tokenizer, limit, num_examples=args.examples)
    if args.json:
        print(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        print(f"{said}\n" * bool(said), end="", file=sys.stderr)
        _tell(found)
    return 1 if found.problems else 0


def _recipe(args: argparse.Namespace) -> tuple["Recipe", str | None, bool]:
    """The recipe, the task if it is known, and whether a model is."""
    from launcher.recipe.library import names
    from launcher.recipe.load import load_recipe

    if args.name in names() or args.name.lower().endswith(_RECIPES):
        changes = [f"model_name_or_path={args.model}"] if args.model else []
        recipe = load_recipe(args.name, [*args.overrides, *changes]).recipe
        return recipe, recipe.task, True
    return _around_file(args), args.task, args.model is not None


def _around_file(args: argparse.Namespace) -> "Recipe":
    """A recipe that says no more than the file's name, so that settings mean what they always mean."""
    place = Path(args.name)
    name = str(place.absolute()) if place.exists() else args.name
    lines = {
        "model": {"model_name_or_path": args.model or "none"},
        "data": {"train_file": name},
    }
    errors = []
    for task in (args.task,) if args.task else ("classification", "causal_lm"):
        try:
            return _loaded({**lines, "task": task}, args.overrides)
        except RecipeError as error:
            errors.append(error)
    raise errors[0]


def _loaded(lines: dict[str, Any], overrides: list[str]) -> "Recipe":
    from launcher.recipe.load import load_recipe

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.yaml"
        file.write_text(json.dumps(lines), encoding="utf-8")
        recipe: Recipe = load_recipe(str(file), overrides).recipe
        return recipe


def _tokenizer(options: "ModelOptions", task: str, *, must: bool) -> tuple[Any, int | None, str]:
    """The model's tokenizer and most positions, without importing torch where its files allow that.

    Where it cannot be had and nobody asked for it by name: none, and a line that says so.
    """
    from launcher.errors import LauncherError
    from launcher.models.source import find_model

    try:
        source = find_model(options)
        return (
            _load(source.location, source.arguments(), source.gguf_file),
            _limit(options, task),
            source.note,
        )
    except LauncherError as error:
        if must:
            raise
        return None, None, f"no tokenizer: {error.problems[0].what}"
    except (OSError, ValueError) as error:
        if must:
            raise _no_tokenizer(options, error) from error
        return None, None, f"no tokenizer: {str(error).splitlines()[0]}"


def _load(location: str, arguments: dict[str, Any], gguf_file: str | None) -> Any:
    if (Path(location) / "tokenizer.json").is_file():
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast.from_pretrained(location, **arguments)
    else:
        from transformers import AutoTokenizer

        more = {"gguf_file": gguf_file} if gguf_file else {}
        tokenizer = AutoTokenizer.from_pretrained(location, **arguments, **more)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _limit(options: "ModelOptions", task: str) -> int | None:
    """The model's positions, where its configuration is here and of a known kind."""
    from launcher.errors import LauncherError
    from launcher.models.config_file import find_config
    from launcher.models.read_shape import shape_of

    try:
        return shape_of(find_config(options), task=task).max_tokens
    except LauncherError:
        return None


def _no_tokenizer(options: "ModelOptions", error: Exception) -> Exception:
    from launcher.errors import BadValue, Problem

    return BadValue(
        Problem(
            where="--model",
            what=f"'{options.model_name_or_path}' has no tokenizer that loads: {str(error).splitlines()[0]}",
            right="a folder with tokenizer.json, or a hub id",
            type="--model FOLDER",
        )
    )


def _tell(found: "Survey") -> None:
    """What was found, on standard output; problems on standard error."""
    for notice in found.notices:
        print(notice, file=sys.stderr)
    if found.splits is not None:
        print("\n".join(_rows(found)))
    elif found.num_rows is not None:
        print(f"rows      {found.num_rows:,}\ncolumns   {', '.join(found.columns)}")
    if found.lengths is not None:
        print("\n".join([*_lengths(found), *_examples(found)]))
    sys.stdout.flush()
    for problem in found.problems:
        print(problem.render(), file=sys.stderr)
    number = len(found.problems)
    print(f"{number} problem{'s' * (number != 1)}", flush=True)


def _rows(found: "Survey") -> Iterator[str]:
    splits = found.splits
    assert splits is not None
    held = "" if splits.evaluation is None else f", {len(splits.evaluation):,} to evaluate on"
    yield f"rows      {len(splits.train):,} to train on{held}"
    yield f"columns   {', '.join(name or '(unnamed)' for name in splits.columns)}"
    roles = ", ".join(f"{role} = {column}" for role, column in (splits.roles or {}).items())
    yield f"layout    {splits.layout} ({roles}), task {found.task}"
    labels = found.labels
    if labels is not None:
        yield f"labels    {_counts(labels['train'])}"
        if labels["evaluation"] is not None:
            yield f"          to evaluate on: {_counts(labels['evaluation'])}"


def _counts(counts: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:30])


def _lengths(found: "Survey") -> Iterator[str]:
    measured, chosen = found.lengths, found.length
    assert measured is not None and chosen is not None
    yield (
        f"lengths   in {measured.unit}: p50 {measured.p50:,}, p95 {measured.p95:,}, p99 {measured.p99:,}, "
        + (f"max {measured.max:,}, mean {measured.mean:,}, {measured.total:,} in all")
    )
    most = max(count for _, _, count in measured.histogram)
    for start, end, count in measured.histogram:
        yield f"  {start:>7,} - {end:>7,}  {count:>9,}  {'#' * max(1, round(_BAR * count / most))}"
    yield "choices   max_length  rows cut  kept    padding: fixed  dynamic  grouped (batches of 32)"
    for each in measured.choices:
        yield (
            f"          {each.max_length:>10,}  {each.cut_rows:>8.1%}  {each.kept_tokens:>6.1%}"
            f"  {each.padding_fixed:>14.1%}  {each.padding_dynamic:>7.1%}  {each.padding_grouped:>7.1%}"
        )
    unit = "" if measured.unit == "tokens" else f" {measured.unit} (a token is less than a word)"
    yield f"choose    max_length {chosen.value}{unit}: {chosen.reason}"


def _examples(found: "Survey") -> Iterator[str]:
    yield f"examples  {len(found.examples)} rows; what is learned stands between ⟦ and ⟧"
    for number, text in enumerate(found.examples, start=1):
        shown = (
            text
            if len(text) <= 1200
            else f"{text[:700]} [... {len(text) - 1000:,} characters ...] {text[-300:]}"
        )
        yield f"--- {number}"
        yield shown
