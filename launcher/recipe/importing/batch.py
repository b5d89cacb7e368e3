"""The global batch out of another tool's micro batch, accumulation and number of processes."""

from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.values import whole_above_zero

GPUS = "hardware.gpus"
GLOBAL = "training.global_batch_size"


def count_of(draft: Draft, names: str, ours: str) -> tuple[int | None, str]:
    """A whole number above zero and the key it came from; what is no number is left and told."""
    key, _ = draft.find(names)
    value = draft.take(names)
    if value is None:
        return None, ""
    try:
        return whole_above_zero(value), key
    except Nothing:
        draft.quiet.append(key)
    except (ValueError, TypeError) as error:
        draft.leave(key, value, f"{ours}: {error}", ours)
    return None, ""


def settle_batch(
    draft: Draft, *, micro: str, accumulation: str, default_micro: int | None, whole: str = ""
) -> None:
    """Take the three numbers (and the product, where the tool has it) and put the recipe's two.

    `default_micro` is the tool's own where the file is silent: None leaves both to the recipe.
    """
    num_left = len(draft.left)
    rows, rows_key = count_of(draft, micro, "training.per_device_train_batch_size")
    if len(draft.left) > num_left:
        default_micro = None  # it is said, and cannot be read: the tool's default is not what was meant
    num_left = len(draft.left)
    steps, steps_key = count_of(draft, accumulation, "training.global_batch_size")
    is_product_known = len(draft.left) == num_left
    total, total_key = count_of(draft, whole, "training.global_batch_size") if whole else (None, "")
    ranks = draft.num_processes or _ranks(total, rows, steps)
    if ranks:
        draft.values.setdefault(GPUS, ranks)
    if not rows and not total and default_micro:
        rows = default_micro
        draft.say("training.per_device_train_batch_size", rows, f"{draft.dialect.title}'s default")
    elif rows:
        draft.put(rows_key, rows, {"training.per_device_train_batch_size": rows})
    if not total and not rows:
        _alone(draft, steps_key, steps)
        return
    if not total and not is_product_known:
        draft.notes.append(f"{GLOBAL}: yours to say: rows of one card x accumulation x processes")
        return
    said = {rows_key: rows, steps_key: steps, total_key: total}
    _put(draft, said, total or _product(rows, steps, ranks))
    _tell(draft, rows, steps, ranks)
    if total and rows_key and total != _product(rows, steps, ranks):
        factors = f"{rows} x {steps or 1} x {ranks or 1}"
        why = f"{total} is not {factors} (rows of one card x accumulation x processes)"
        key = steps_key or rows_key
        draft.leave(key, steps or rows, why, f"{GLOBAL}: {total} is kept")


def _product(rows: int | None, steps: int | None, ranks: int | None) -> int:
    return (rows or 1) * (steps or 1) * (ranks or 1)


def _put(draft: Draft, said: dict[str, int | None], total: int) -> None:
    """The global batch, under the names of the keys that make it."""
    keys = [key for key in said if key]
    if keys:
        draft.put(" + ".join(keys), " x ".join(str(said[key]) for key in keys), {GLOBAL: total})
    else:
        draft.values.setdefault(GLOBAL, total)


def _alone(draft: Draft, key: str, steps: int | None) -> None:
    """Accumulation without rows makes no batch."""
    if steps and steps > 1:
        why = "accumulation is worked out from the global batch, which this file does not tell"
        draft.leave(key, steps, why, f"{GLOBAL}: rows of one card x this x processes")
    elif key:
        draft.quiet.append(key)


def _ranks(total: int | None, rows: int | None, steps: int | None) -> int | None:
    """How many processes the product was written for, where it comes out even."""
    if not total or not rows:
        return None
    each = rows * (steps or 1)
    return total // each if total % each == 0 else None


def _tell(draft: Draft, rows: int | None, steps: int | None, ranks: int | None) -> None:
    total = draft.values.get(GLOBAL)
    sum_ = f"{rows or 'auto'} rows x {steps or 1} accumulation x {ranks or 1} process(es)"
    if ranks:
        draft.notes.append(f"{GLOBAL}: {total}, from {sum_}; it stays so on any number of cards")
        return
    unsaid = "the file does not say how many processes it was started with; for N of them type --gpus N"
    draft.notes.append(f"{GLOBAL}: {total}, from {sum_}: {unsaid}")
