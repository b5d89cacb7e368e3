"""How often to evaluate and to save: a strategy and a number of steps become one interval."""

from typing import Any

from launcher.recipe.importing.draft import MISSING, Draft
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.values import number


def settle_interval(
    draft: Draft, *, strategy: str, steps: str, ours: str, default_steps: Any = None, unsaid: str = ""
) -> None:
    """Take both keys and put one interval. `default_steps` is the tool's own where the strategy is steps.

    `unsaid` is what the tool does where both keys are absent and it is not what happens here.
    """
    kind_key, kind = draft.find(strategy)
    steps_key, amount = draft.find(steps)
    draft.take(strategy)
    draft.take(steps)
    said = [each for each, value in ((kind_key, kind), (steps_key, amount)) if value is not MISSING]
    key = " + ".join(said)
    if kind is MISSING and amount is MISSING:
        if unsaid:
            draft.say(ours, unsaid, f"the default of {draft.dialect.title}")
        return
    kind = "steps" if kind is MISSING else str(kind).lower().rpartition(".")[2]
    if kind in ("no", "false", "none", "null"):
        draft.quiet += said
    elif kind == "epoch":
        draft.put(key, kind, {ours: "1 epochs"})
    elif kind == "best":
        draft.put(key, kind, {ours: "1 epochs"})
        draft.notes.append(f"{ours}: each epoch; the best one is kept by load_best_model_at_end")
    elif kind != "steps":
        draft.leave(key, kind, f"{ours}: known are no, steps and epoch", ours)
    else:
        _steps(draft, key, default_steps if amount in (MISSING, None) else amount, ours)


def _steps(draft: Draft, key: str, amount: Any, ours: str) -> None:
    try:
        found = number(amount)
    except Nothing:
        draft.leave(key, amount, f"{ours}: steps are asked for without a number", f"{ours}: 500 steps")
        return
    except (ValueError, TypeError) as error:
        draft.leave(key, amount, f"{ours}: {error}", f"{ours}: 500 steps")
        return
    if found <= 0:
        draft.quiet += key.split(" + ")
    elif found >= 1:
        draft.put(key, amount, {ours: f"{int(found)} steps"})
    else:
        _share(draft, key, found, ours)


def _share(draft: Draft, key: str, share: float, ours: str) -> None:
    """Below 1 it is a share of all steps: of the epochs, or of max_steps where that is given."""
    try:
        most = number(draft.peek("max_steps", 0) or 0)
        epochs = number(draft.peek("num_train_epochs num_epochs", 3.0))
    except (Nothing, ValueError, TypeError):
        draft.leave(key, share, f"{ours}: a share of a length that is no number", f"{ours}: 0.5 epochs")
        return
    interval = f"{max(1, round(share * most))} steps" if most > 0 else f"{share * epochs:g} epochs"
    draft.put(key, share, {ours: interval})


def settle_precision(draft: Draft, *, fp16: str, bf16: str, what_else: str) -> None:
    """Two switches become one precision. `what_else` says what the tool computes in where both are silent."""
    on, off, auto = [], [], []
    for name, names in (("bf16", bf16), ("fp16", fp16)):
        key, value = draft.find(names)
        if value is MISSING:
            continue
        draft.take(names)
        text = str(value).lower()
        if text in ("full", "true", "1", "yes", "on"):
            on.append((key, value, name))
        elif text in ("auto",):
            auto.append(key)
        elif text in ("false", "none", "no", "0", "off", "null"):
            off.append(key)
        else:
            draft.leave(key, value, "training.precision: true or false is wanted", f"precision: {name}")
    for key, value, name in on:
        draft.put(key, value, {"training.precision": name})
        if str(value).lower() == "full":
            draft.notes.append("training.precision: weights stay fp32 here; dtype: bfloat16 halves them")
    draft.quiet += [*off, *auto]
    if on or auto or "training.precision" in draft.values:
        return
    if len(off) == 2:
        draft.say("training.precision", "fp32", "both half precisions are switched off there")
    else:
        draft.notes.append(
            f"training.precision: not said; {what_else}; auto here takes bf16 where the card has it"
        )
