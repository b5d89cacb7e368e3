"""Make a draft's values a recipe that loads: what the schema or a rule does not take is left and told."""

from launcher.errors import Problem
from launcher.recipe.build import build, origins
from launcher.recipe.importing.draft import Draft
from launcher.recipe.keys import PIECES, fields_of
from launcher.recipe.provenance import Leaf, Origin
from launcher.recipe.rules import problems_of

_FILE = Origin(kind="recipe", file="imported.yaml", line=1)
_REQUIRED = ("task", "model.model_name_or_path", "data.train_file")


def fit(draft: Draft) -> None:
    """Leave out, one by one, every value that keeps the recipe from loading."""
    if "backend.name" not in draft.values and int(draft.values.get("hardware.gpus", 1)) > 1:
        draft.say("backend.name", "multi_gpu", "several processes, and no other way to spread them is said")
    _without_foreign_options(draft)
    for _ in range(len(draft.values)):
        problems = problems_in(draft)
        dropped = [problem for problem in problems if _drop(draft, problem)]
        if not dropped:
            break
    for problem in problems_in(draft):
        draft.notes.append(f"still to settle: {problem.what}; right: {problem.right}; type: {problem.type}")


def problems_in(draft: Draft) -> list[Problem]:
    """Everything that the schema, and then the rules, have against the values."""
    leaves = {
        tuple(key.split(".")): Leaf(path=tuple(key.split(".")), value=value, raw=_raw(value), origin=_FILE)
        for key, value in draft.values.items()
    }
    built = build(leaves, _FILE)
    if built.problems or built.recipe is None:
        return list(built.problems)
    return problems_of(built.recipe, origins(built.recipe, built.leaves))


def _raw(value: object) -> object:
    return value if isinstance(value, list | dict) else str(value)


def _without_foreign_options(draft: Draft) -> None:
    """Options of another method or backend than the chosen one."""
    for section, (choice, _) in PIECES.items():
        piece = draft.values.get(f"{section}.{choice}", {"adapter": "full", "backend": "single_gpu"}[section])
        known = fields_of(section, str(piece))
        for key in [key for key in draft.values if key.startswith(f"{section}.")]:
            if key.partition(".")[2] not in known:
                _leave(draft, key, f"{section} {piece} has no such option", f"{section}: {piece}")


def _drop(draft: Draft, problem: Problem) -> bool:
    """Take out the value that a problem is about; the required ones stay, to be told."""
    key = problem.what.partition(":")[0]
    if key not in draft.values:
        key = next((each for each in draft.values if key.startswith(f"{each}.") or each == key), "")
    if not key or key in _REQUIRED:
        return False
    _leave(draft, key, problem.what.partition(": ")[2] or problem.what, problem.right)
    return True


def _leave(draft: Draft, key: str, why: str, near: str) -> None:
    """Take a carried value back: its key of theirs is told with the reason."""
    value = draft.values.pop(key)
    source = next((each for each in draft.carried if key in each.ours), None)
    if source is None:
        draft.leave(key, value, why, near)
        return
    draft.leave(source.theirs, source.value, f"{key}: {why}", near)
    if len(source.ours) == 1:
        draft.carried.remove(source)
