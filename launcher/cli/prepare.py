"""`launcher prepare RECIPE`: everything slow that needs no GPU, before the meter runs."""

import os
import shlex
import sys

from launcher.backends.options import BACKENDS
from launcher.cli._recipe_words import recipe_settings
from launcher.errors import DataError
from launcher.plan.room_by_mount import require_rooms
from launcher.process.arguments import QUICKSTART, Grammar, Reader
from launcher.process.build_operators import build, wanted
from launcher.process.on_platform import settle_platform
from launcher.process.prepare import put_bin_first
from launcher.recipe.check import data_problems
from launcher.recipe.load import load_recipe

SUMMARY = "download and tokenise before a GPU is rented"
USAGE = """usage: launcher prepare RECIPE [--backend NAME] [--gpus N] [--build-ops] [--verify] [key=value ...]

Checks the disk for the whole run, downloads the model (resumed, hashes checked, HF_ENDPOINT respected),
and tokenises the data into the cache. Needs no GPU. A second call finds everything in place.

--build-ops  compile DeepSpeed's operators that the backend uses (minutes)
--verify     read data files and cached tokens again, byte by byte"""
GRAMMAR = Grammar(
    with_value=("recipe", "backend", "gpus"), flags=("build_ops", "verify"), names_recipe=True, usage=USAGE
)


def run(reader: Reader) -> int:
    """Do it step by step; ends with the line to type where the GPU is."""
    for line in settle_platform(os.environ):  # before any library has read where its cache is
        _say(line)
    name = reader.options.get("recipe", QUICKSTART)
    loaded = load_recipe(name, reader.overrides, extra=recipe_settings(reader))
    recipe = loaded.recipe
    if missing := [*data_problems(loaded)]:
        raise DataError(missing)
    put_bin_first(os.environ)
    for line in require_rooms(recipe, loaded.name):
        _say(line)
    from launcher.models.download import download
    from launcher.models.load_torch import quiet_loading
    from launcher.train.prepared import prepare_data

    found = download(recipe.model, say=_say)
    if found is not None:
        _say(f"model: {found.num_files} files in {found.folder}, whole and as the hub states")
        _say(f"to keep to this commit: model.revision={found.revision}")
    quiet_loading()
    for line in prepare_data(recipe, say=_say, verify="verify" in reader.flags).notices:
        _say(line)
    if "build_ops" in reader.flags:
        backend = BACKENDS.get(recipe.backend.name)
        _say(f"operators of {backend.name}: {', '.join(wanted(backend)) or 'none that is compiled'}")
        if code := build(backend, os.environ):
            return code
    words = [word for word in reader.typed if word not in ("--build-ops", "--build_ops", "--verify")]
    print(f"ready; where the GPU is, type: launcher run {shlex.join(words) or QUICKSTART}")
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
