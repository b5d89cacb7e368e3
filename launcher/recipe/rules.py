"""Rules between keys: small named functions, each giving findings about one recipe.

`PROBLEMS` make a recipe unusable. `NO_EFFECT` are options that are given and change nothing, and
surprises worth one line. Rules about one key alone live beside that key; files are `check`'s.
"""

from collections.abc import Iterator, Mapping

from launcher.errors import Problem
from launcher.recipe import (
    backend_rules,
    batch_rules,
    data_rules,
    evaluation_rules,
    freezing_rules,
    optimizer_rules,
    precision_rules,
)
from launcher.recipe.given import Given, Notice, Rule
from launcher.recipe.paths import path_slip
from launcher.recipe.provenance import Origin
from launcher.recipe.schema import Recipe


def problems_of(recipe: Recipe, origins: Mapping[str, Origin]) -> list[Problem]:
    """Everything between keys that makes the recipe unusable."""
    given = Given(recipe=recipe, origins=origins)
    return [problem for rule in PROBLEMS for problem in rule(given)]


def notices_of(recipe: Recipe, origins: Mapping[str, Origin]) -> list[str]:
    """Options without effect and surprises, one line each."""
    given = Given(recipe=recipe, origins=origins)
    return [notice for rule in NO_EFFECT for notice in rule(given)]


def trackers_agree(given: Given) -> Iterator[Problem]:
    """`none` beside a tracker's name says two things."""
    names = given.recipe.tracking.report_to
    if "none" in names and len(set(names)) > 1:
        what = f"none and {', '.join(name for name in names if name != 'none')} contradict each other"
        yield given.problem("tracking.report_to", what, "none alone, or the trackers", "report_to: none")


def resuming_names_a_place(given: Given) -> Iterator[Problem]:
    """`true`, as elsewhere, would be a folder of that name."""
    text = given.recipe.training.resume_from_checkpoint
    if text is not None and text.strip().lower() in ("true", "yes", "on", "last", "latest"):
        key, right = "training.resume_from_checkpoint", "auto (the newest whole checkpoint), or a folder"
        yield given.problem(key, f"'{text}' is no folder", right, "resume_from_checkpoint: auto, or --resume")


def pip_package_has_a_folder(given: Given) -> Iterator[Problem]:
    """An empty distribution's name finds nothing."""
    name = given.recipe.model.pip_package
    if name is not None and not name.partition("/")[0].strip():
        yield given.problem(
            "model.pip_package",
            f"'{name}' names no distribution",
            "distribution/folder",
            "pip_package: name/model",
        )


def paths_are_meant_as_they_stand(given: Given) -> Iterator[Problem]:
    """`$HOME/runs` would be a folder of that very name."""
    recipe = given.recipe
    paths = {
        "output_dir": recipe.output_dir,
        "model.model_name_or_path": recipe.model.model_name_or_path,
        "training.resume_from_checkpoint": recipe.training.resume_from_checkpoint,
    }
    for key, text in paths.items():
        if text is not None and "$" in text and (slip := path_slip(text)):
            yield given.problem(key, f"'{text}' names a variable", slip[0], f'{key}="{text}"')


PROBLEMS: tuple[Rule, ...] = (
    paths_are_meant_as_they_stand,
    *evaluation_rules.PROBLEMS,
    *batch_rules.PROBLEMS,
    *backend_rules.PROBLEMS,
    *precision_rules.PROBLEMS,
    *data_rules.PROBLEMS,
    *freezing_rules.PROBLEMS,
    *optimizer_rules.PROBLEMS,
    trackers_agree,
    resuming_names_a_place,
    pip_package_has_a_folder,
)
NO_EFFECT: tuple[Notice, ...] = (
    *batch_rules.NO_EFFECT,
    *backend_rules.NO_EFFECT,
    *precision_rules.NO_EFFECT,
    *data_rules.NO_EFFECT,
    *evaluation_rules.NO_EFFECT,
    *freezing_rules.NO_EFFECT,
    *optimizer_rules.NO_EFFECT,
)
