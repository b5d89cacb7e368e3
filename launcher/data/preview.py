"""A few rows as the model meets them, with what it learns to write between marks."""

from typing import Any

import numpy as np

from launcher.data.examples import Examples
from launcher.data.ragged import Bool, Int32, Int64
from launcher.data.tokens import TokenStore

OPEN, CLOSE = "⟦", "⟧"


def chosen_rows(num_rows: int, most: int) -> list[int]:
    """Rows from all over the file: files are often sorted."""
    return sorted({round(place) for place in np.linspace(0, num_rows - 1, min(most, num_rows))})


def marked(ids: Int32, trained: Bool | None, tokenizer: Any) -> str:
    """A row's ids as text; stretches that are trained stand between marks."""
    if trained is None:
        return f"{OPEN}{_text(ids, tokenizer)}{CLOSE}"
    borders = np.flatnonzero(np.diff(trained.astype(np.int8))) + 1
    parts = zip(np.split(ids, borders), np.split(trained, borders), strict=True)
    return "".join(
        f"{OPEN}{_text(part, tokenizer)}{CLOSE}" if marks[0] else _text(part, tokenizer)
        for part, marks in parts
        if len(part)
    )


def _text(ids: Int32, tokenizer: Any) -> str:
    return str(tokenizer.decode(ids.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def rendered(store: TokenStore, tokenizer: Any, names: tuple[str, ...], most: int) -> list[str]:
    """Rows of a store as text. A labelled row is followed by what it is to be told as."""
    rows = []
    for row in chosen_rows(len(store), most):
        part = slice(int(store.offsets[row]), int(store.offsets[row + 1]))
        if store.task == "causal_lm":
            rows.append(marked(store.input_ids[part], _marks(store, part), tokenizer))
        else:
            label = None if store.labels is None else shown_label(store.labels[row], names)
            rows.append(f"{_text(store.input_ids[part], tokenizer)}  {OPEN}{label}{CLOSE}")
    return rows


def _marks(store: TokenStore, part: slice) -> Bool | None:
    return None if store.trained is None else store.trained[part]


def shown_label(label: Any, names: tuple[str, ...]) -> str:
    """A label by name: a class, a set of classes, or a number."""
    if np.ndim(label) == 1:
        return ", ".join(name for name, held in zip(names, label, strict=True) if held) or "none"
    return names[int(label)] if isinstance(label, np.integer) else f"{float(label):g}"


def plain(examples: Examples, names: tuple[str, ...], most: int) -> list[str]:
    """Rows without a tokenizer: their roles one after another, what is learned between marks."""
    return [_plain(examples, row, names) for row in chosen_rows(len(examples), most)]


def _plain(examples: Examples, row: int, names: tuple[str, ...]) -> str:
    if examples.turns is not None:
        turns = examples.turns[row]
        said: list[tuple[str, str, bool]] = [
            (turn.role, turn.text or str(turn.calls), turn.role == "assistant") for turn in turns
        ]
    else:
        texts = {role: column[row] for role, column in examples.texts.items() if column[row]}
        said = [(role, text, _is_learned(role, examples)) for role, text in texts.items()]
    lines = [f"{role}: {OPEN}{text}{CLOSE}" if learned else f"{role}: {text}" for role, text, learned in said]
    if examples.labels is not None:
        lines.append(f"label: {OPEN}{shown_label(examples.labels[row], names)}{CLOSE}")
    return "\n".join(lines)


def _is_learned(role: str, examples: Examples) -> bool:
    return role in ("output", "completion") or examples.layout == "plain_text"


def label_counts(labels: Int64 | Any, names: tuple[str, ...]) -> dict[str, int] | dict[str, float]:
    """Rows of each class by name; of numbers, their range and mean."""
    if labels.dtype == np.int64:
        counts = np.bincount(labels, minlength=len(names))
        return dict(zip(names, counts.tolist(), strict=True))
    if labels.ndim == 2:
        return dict(zip(names, labels.sum(0).astype(int).tolist(), strict=True))
    return {
        "min": round(float(labels.min()), 6),
        "mean": round(float(labels.mean()), 6),
        "max": round(float(labels.max()), 6),
    }
