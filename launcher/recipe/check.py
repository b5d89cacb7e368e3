"""All that can be told about a recipe before it is planned: its values, its rules, its data files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.data.format import FORMATS, format_of
from launcher.data.place import files_in, kind_of
from launcher.errors import LauncherError, Problem, RecipeError
from launcher.models.not_a_model import no_folder, no_model_in
from launcher.recipe.build import value_at
from launcher.recipe.library import exists, is_shipped
from launcher.recipe.load import LoadedRecipe, load_recipe
from launcher.recipe.paths import candidates, near_file, path_slip
from launcher.recipe.provenance import Origin, shown
from launcher.recipe.tracking import missing_trackers
from launcher.registry import nearest

DATA_KEYS = ("data.train_file", "data.eval_file")


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a check found. `only_data`: the recipe itself is sound, its files are not there."""

    name: str
    path: str = ""
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()
    only_data: bool = False


def check(name_or_file: str, overrides: Sequence[str] = ()) -> Findings:
    """Load a recipe and look at its files. Problems are given back, not raised."""
    try:
        loaded = load_recipe(name_or_file, overrides)
    except RecipeError as error:
        return Findings(name=name_or_file, problems=error.problems)
    files = {key: _missing(loaded, key) for key in DATA_KEYS}
    brought = [key for key, found in files.items() if found and to_be_brought(loaded, key)]
    problems = [problem for key, found in files.items() if key not in brought for problem in found]
    problems += _model_folder(loaded)
    trackers = [problem.render() for problem in missing_trackers(loaded.recipe.tracking)]
    notices = [*loaded.notices, *_bring_your_own(loaded, brought), *trackers]
    return Findings(
        name=name_or_file,
        path=str(loaded.path),
        problems=tuple(problems),
        notices=tuple(notices),
        only_data=bool(problems),
    )


def data_problems(loaded: LoadedRecipe) -> list[Problem]:
    """Every data file that is missing or of no known format, the places where it was sought named."""
    return [problem for key in DATA_KEYS for problem in _missing(loaded, key)]


def to_be_brought(loaded: LoadedRecipe, key: str) -> bool:
    """Whether a shipped recipe says where its file is to be had, and nobody has named another one."""
    origin = loaded.origins[key]
    return loaded.recipe.data.source is not None and bool(origin.file) and is_shipped(Path(origin.file))


def _missing(loaded: LoadedRecipe, key: str) -> Iterator[Problem]:
    text, origin = value_at(loaded.recipe, tuple(key.split("."))), loaded.origins[key]
    if text is None:
        return
    path = Path(text)
    kind = kind_of(path)
    if kind in ("hub", "saved"):
        return  # whether they can be had shows when they are read
    if kind == "many":
        if not files_in(path):
            yield _holds_nothing(path, key, origin)
    elif not (path.is_absolute() and path.exists()):
        yield _not_found(loaded, key, text, origin)
    elif format_of(path) is None and loaded.recipe.data.format == "auto":
        close = nearest(path.suffix, suffixes())
        yield Problem(
            where=origin.place(),
            what=f"{key}: '{path.suffix}' is no known format",
            right=f"one of: {', '.join(suffixes())}",
            type=f"{key}={path.stem}{close or suffixes()[0]}",
        )


def _model_folder(loaded: LoadedRecipe) -> Iterator[Problem]:
    """A model that is named by a path must lie there; hub ids are asked for when they are fetched."""
    options, key = loaded.recipe.model, "model.model_name_or_path"
    if options.pip_package or not options.model_name_or_path.startswith(("/", "./", "../", "~")):
        return
    folder, wanted = Path(options.model_name_or_path).expanduser(), options.gguf_file or "config.json"
    if exists(folder) and folder.is_dir() and exists(folder / wanted):
        return
    error = no_model_in(folder, wanted) if exists(folder) and folder.is_dir() else no_folder(folder)
    yield from (replace(each, where=loaded.origins[key].place()) for each in error.problems)


def suffixes() -> list[str]:
    """The endings of files that can be read."""
    return [suffix for known in FORMATS for suffix in known.suffixes]


def _holds_nothing(path: Path, key: str, origin: Origin) -> Problem:
    what = "the folder holds no data file" if path.is_dir() else "the pattern finds no file"
    return Problem(
        where=origin.place(),
        what=f"{key}: {shown(path)}: {what}",
        right=f"files that end in one of: {', '.join(suffixes())} (or these with .gz or .zst)",
        type=f"{key}=FILE, or {key}=FOLDER",
    )


def _not_found(loaded: LoadedRecipe, key: str, text: str, origin: Origin) -> Problem:
    base = Path(origin.file) if origin.file else Path.cwd() / "command line"
    tried = ", ".join(shown(place) for place in candidates(text, base))
    source = loaded.recipe.data.source
    what = f"{key}: there is no file '{text}'; sought: {tried}"
    if slip := path_slip(text):
        quoted = f'"{slip[1]}"' if "$" in slip[1] or " " in slip[1] else slip[1]
        return Problem(where=origin.place(), what=what, right=slip[0], type=f"{key}={quoted}")
    close = near_file(candidates(text, base))
    return Problem(
        where=origin.place(),
        what=what,
        right=(f"{close} is there; or " if close else "")
        + f"a file of one of the formats {', '.join(suffixes())}"
        + (f"; get it from {source}" if source else ""),
        type=f"{key}={close or 'FILE'}",
    )


def _bring_your_own(loaded: LoadedRecipe, keys: Sequence[str]) -> list[str]:
    if not keys:
        return []
    typed = " ".join(f"{key}=FILE" for key in keys)
    files = " and ".join(str(value_at(loaded.recipe, tuple(key.split(".")))) for key in keys)
    source = loaded.recipe.data.source
    return [f"{loaded.name}: its data is yours to bring ({source}): put {files} here, or type {typed}"]


def check_all(names: Sequence[str], overrides: Sequence[str] = ()) -> list[Findings]:
    """Check several recipes; a name that is not known is a finding like any other."""
    found: list[Findings] = []
    for name in names:
        try:
            found.append(check(name, overrides))
        except LauncherError as error:
            found.append(Findings(name=name, problems=error.problems))
    return found
