"""The same row twice: inside a file, and on both sides of training and evaluation."""

from collections.abc import Iterator

from launcher.data.examples import Examples
from launcher.data.findings import excerpt
from launcher.errors import DataError, Problem

SHORTEST = 20
Content = tuple[object, ...]


def contents(examples: Examples, *, labels: bool) -> Iterator[Content]:
    """What makes a row the same as another: its texts or turns, white space at the ends aside."""
    columns = [column for role, column in examples.texts.items() if role != "speaker"]
    for row in range(len(examples)):
        texts = tuple(column[row].strip() for column in columns)
        said = (
            tuple(
                (turn.role, turn.text.strip(), turn.calls and str(turn.calls)) for turn in examples.turns[row]
            )
            if examples.turns
            else ()
        )
        label = (examples.labels[row].tobytes(),) if labels and examples.labels is not None else ()
        yield (*texts, *said, *label)


def distinct(examples: Examples) -> tuple[Examples, int]:
    """The rows without repetitions (the first of each stays), and how many were left out."""
    seen: dict[Content, int] = {}
    for row, content in enumerate(contents(examples, labels=True)):
        seen.setdefault(content, row)
    if len(seen) == len(examples):
        return examples, 0
    return examples.take(list(seen.values())), len(examples) - len(seen)


def num_repeated(examples: Examples) -> int:
    """Rows that another row before them already is, text and label."""
    return len(examples) - len(set(contents(examples, labels=True)))


def contradicted(examples: Examples) -> list[int]:
    """Rows whose text stands before them with another label."""
    first: dict[Content, bytes] = {}
    found = []
    if examples.labels is None:
        return []
    for row, content in enumerate(contents(examples, labels=False)):
        label = examples.labels[row].tobytes()
        if first.setdefault(content, label) != label:
            found.append(row)
    return found


def leaked(train: Examples, evaluation: Examples) -> list[tuple[int, int]]:
    """(evaluation row, training row) of equal texts of 20 characters or more: short ones meet by chance."""
    known: dict[Content, int] = {}
    for row, content in enumerate(contents(train, labels=False)):
        known.setdefault(content, row)
    pairs = []
    for row, content in enumerate(contents(evaluation, labels=False)):
        if content in known and sum(len(str(part)) for part in content) >= SHORTEST:
            pairs.append((row, known[content]))
    return pairs


def check_leaks(train: Examples, evaluation: Examples, most: float) -> tuple[str, ...]:
    """A notice of how many evaluation rows are trained on. Raises DataError above the share `most`."""
    pairs = leaked(train, evaluation)
    if not pairs:
        return ()
    share = len(pairs) / len(evaluation)
    said = f"{len(pairs):,} of {len(evaluation):,} evaluation rows ({share:.1%}) are trained on too"
    row, source = pairs[0]
    first = f"{evaluation.where(row)} is {train.where(source)}: {excerpt(_shown(evaluation, row))}"
    if len(pairs) <= (max(1.0, most * len(evaluation)) if most else 0):  # one may be chance
        return (f"{said} (first: {first})",)
    raise DataError(
        Problem(
            where=evaluation.where(row),
            what=f"{said}: the metric would measure memory; first: {first}",
            right=f"at most {most:.1%} of the rows (data.max_leaked_fraction)",
            type="data.drop_duplicates=true if the file repeats its rows, another evaluation file, "
            f"or data.max_leaked_fraction={min(1.0, share + 0.001):.3f} if it must be",
        )
    )


def _shown(examples: Examples, row: int) -> str:
    if examples.turns:
        return next((turn.text for turn in examples.turns[row]), "")
    return next((column[row] for column in examples.texts.values() if column[row]), "")
