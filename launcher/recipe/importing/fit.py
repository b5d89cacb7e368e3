"""Make a draft's values a recipe that loads: what the schema or a rule does not take is left and told."""

from dataclasses import replace

from launcher.errors import BadValue, Problem
from launcher.recipe.batch import nearest_reachable
from launcher.recipe.build import build, origins
from launcher.recipe.importing.draft import Draft
from launcher.recipe.keys import PIECES, fields_of
from launcher.recipe.provenance import Leaf, Origin
from launcher.recipe.rules import problems_of
from launcher.recipe.training import TrainingOptions

DEFAULT_ROWS = TrainingOptions.model_fields["global_batch_size"].default
_FILE = Origin(kind="recipe", file="imported.yaml", line=1)
# What only a person can say, and what stands in its place until then.
TO_SAY = {"model.model_name_or_path": "MODEL", "data.train_file": "data/train.jsonl", "task": "causal_lm"}
_GPUS, _BATCH = "hardware.gpus", "training.global_batch_size"


def fit(draft: Draft) -> None:
    """Leave out, one by one, every value that keeps the recipe from loading."""
    for key in TO_SAY:
        if key not in draft.values:
            _to_be_said(draft, key)
    if "backend.name" not in draft.values and _ranks(draft) > 1:
        draft.say("backend.name", "multi_gpu", "several processes, and no other way to spread them is said")
    _reachable(draft)
    _without_foreign_options(draft)
    for _ in range(len(draft.values)):
        problems = problems_in(draft)
        dropped = [problem for problem in problems if _drop(draft, problem)]
        if not dropped:
            break
    for problem in problems_in(draft):
        draft.notes.append(f"still to settle: {problem.what}; right: {problem.right}; type: {problem.type}")


def _to_be_said(draft: Draft, key: str) -> None:
    draft.values[key] = TO_SAY[key]
    draft.to_say.append(key)


def _reachable(draft: Draft) -> None:
    """A global batch that the processes can make: the next larger one where they cannot."""
    ranks, rows = _ranks(draft), draft.values.get(_BATCH, DEFAULT_ROWS)
    if isinstance(rows, int) and rows % ranks and _BATCH not in draft.typed:
        near = nearest_reachable(rows, ranks)[-1]
        draft.values[_BATCH] = near
        draft.notes.append(f"{_BATCH}: {near}: {rows} rows do not divide over {ranks} processes")


def _ranks(draft: Draft) -> int:
    """The processes; 1 where what was typed is no number of them (the schema tells)."""
    found = draft.values.get(_GPUS, 1)
    return found if isinstance(found, int) and found > 0 else 1


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
    """Take out the value that a problem is about. Raises BadValue for one that was typed beside the file."""
    key = problem.what.partition(":")[0]
    if key not in draft.values:
        key = next((each for each in draft.values if key.startswith(f"{each}.") or each == key), "")
    if key in draft.typed:
        raise BadValue(replace(problem, where="command line"))
    if not key or key in draft.to_say:
        return False
    _leave(draft, key, problem.what.partition(": ")[2] or problem.what, problem.right)
    if key in TO_SAY:
        _to_be_said(draft, key)
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
