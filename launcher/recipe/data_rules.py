"""Rules between the `data` section and the task."""

from collections.abc import Iterator

from launcher.data.layout import LAYOUTS
from launcher.errors import Problem
from launcher.recipe.build import value_at
from launcher.recipe.given import Given, Notice, Rule
from launcher.registry import nearest

# Values that ask for nothing: a resolved recipe writes them too.
_UNSAID: tuple[object, ...] = (None, {}, "auto", False, "none", "completions")
TEMPLATES = ("auto", "chat", "chatml", "alpaca", "plain", "none")


def labels_are_distinct(given: Given) -> Iterator[Problem]:
    """Label names are the ids' names: at least two, none twice."""
    labels = given.recipe.data.labels
    if labels is not None and (len(set(labels)) != len(labels) or len(labels) < 2):
        twice = sorted({label for label in labels if labels.count(label) > 1})
        what = f"{', '.join(twice)} stand twice" if twice else f"{len(labels)} label is too few"
        yield given.problem(
            "data.labels", what, "two or more different names", "labels: [negative, positive]"
        )


def template_is_known(given: Given) -> Iterator[Problem]:
    """An instruction becomes a prompt by one of a few templates."""
    name = given.recipe.data.template
    if name not in TEMPLATES:
        close = nearest(name, TEMPLATES, cutoff=0.7) or "chat"
        yield given.problem(
            "data.template",
            f"unknown template '{name}'",
            f"one of: {', '.join(TEMPLATES)} (chat: the model's own, whatever its family)",
            f"template: {close}",
        )


def layout_is_for_the_task(given: Given) -> Iterator[Problem]:
    """A layout belongs to one task, and only its roles can be given columns."""
    name, task = given.recipe.data.layout, given.recipe.task
    fitting = [layout for layout in LAYOUTS if layout.task == task]
    names = ", ".join(layout.name for layout in fitting)
    if name != "auto" and name not in LAYOUTS.names():
        what = f"unknown layout '{name}'"
        close = nearest(name, LAYOUTS.names()) or "auto"
        yield given.problem("data.layout", what, f"one of: auto, {names}", f"layout: {close}")
    elif name != "auto" and LAYOUTS.get(name).task != task:
        what = f"'{name}' is for task {LAYOUTS.get(name).task}, the recipe's task is {task}"
        yield given.problem("data.layout", what, f"one of: auto, {names}", "layout: auto")


def columns_are_roles(given: Given) -> Iterator[Problem]:
    """Columns are given to roles that some layout of the task has."""
    roles = [role.name for layout in LAYOUTS if layout.task == given.recipe.task for role in layout.roles]
    known = list(dict.fromkeys(roles))
    for role, column in given.recipe.data.columns.items():
        if role not in known:
            key = f"data.columns.{role}"
            typed = f"columns: {{{nearest(role, known) or known[0]}: {column}}}"
            yield given.problem(key, f"'{role}' is no role of a row", f"one of: {', '.join(known)}", typed)


def stride_is_for_windows(given: Given) -> Iterator[Problem]:
    """A stride says how far apart windows start."""
    data = given.recipe.data
    if data.window_stride is not None and data.overflow != "windows":
        yield given.problem(
            "data.window_stride",
            "there are no windows to stride over",
            "overflow: windows, or no window_stride",
            "overflow: windows",
        )


def options_of_the_other_task(given: Given) -> Iterator[str]:
    """Some keys matter only to classifiers, some only to language models."""
    only = {
        "classification": ("data.labels", "data.context.turns", "data.class_weights"),
        "causal_lm": (
            "training.loss_chunk_bytes",
            "data.template",
            "data.fill",
            "data.packing",
            "data.train_on",
        ),
    }
    for task, keys in only.items():
        if task != given.recipe.task:
            for key in keys:
                says = value_at(given.recipe, tuple(key.split("."))) not in _UNSAID
                if given.is_given(key) and says:  # a resolved recipe writes every key, empty ones too
                    yield given.no_effect(key, f"only {task} uses it")


PROBLEMS: tuple[Rule, ...] = (
    labels_are_distinct,
    template_is_known,
    layout_is_for_the_task,
    columns_are_roles,
    stride_is_for_windows,
)
NO_EFFECT: tuple[Notice, ...] = (options_of_the_other_task,)
