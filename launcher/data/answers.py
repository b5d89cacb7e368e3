"""Prompt and answer as one row of ids, of which the answer and its end token are trained."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.encode import encode
from launcher.data.examples import Examples
from launcher.data.ragged import Bool, Int64, Ragged, offsets_of, positions
from launcher.data.templates import choose, prompt_opening, render_end, render_prompts
from launcher.errors import DataError, Problem

MOST_LOST = 0.01


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Rows of prompt and answer, which of their ids are trained, and what had to be cut."""

    rows: Ragged
    trained: Bool
    num_truncated: int
    notices: tuple[str, ...]


def join_answers(examples: Examples, tokenizer: Any, template: str, max_length: int) -> Joined:
    """Each example's ids. A row that is too long loses the left of its prompt, never its answer.

    Rows whose answer alone does not fit are left out and counted. Raises DataError above 1 % of them.
    """
    name = choose(template, tokenizer)
    first, prompts = _prompts(examples, tokenizer, name)
    answers = _answers(examples, tokenizer, name)
    # One id must stand in front of the answer: it predicts the answer's first.
    room = max_length - answers.lengths - len(first)
    fits = np.flatnonzero(room >= (0 if first else 1)).astype(np.int64)
    notices = _lost(examples, fits, max_length, needed=int((max_length - room).max()) + (not first))
    prompts, answers, room = prompts.take(fits), answers.take(fits), room[fits]
    kept = np.minimum(prompts.lengths, room)
    rows, trained = _put_together(first, prompts, kept, answers)
    num_cut = int((kept < prompts.lengths).sum())
    return Joined(rows=rows, trained=trained, num_truncated=num_cut, notices=notices)


def _prompts(examples: Examples, tokenizer: Any, name: str) -> tuple[list[int], Ragged]:
    """The ids that begin every prompt and survive a cut, and the prompts without them."""
    texts = render_prompts(examples.texts["instruction"], examples.texts["input"], tokenizer, name)
    prompts = encode(texts, tokenizer, special_tokens=False)
    first = prompt_opening(tokenizer, name)
    begin = getattr(tokenizer, "bos_token_id", None)
    if name != "chat" or begin is None or not len(texts) or not (prompts.lengths > 0).all():
        return first, prompts
    if not (prompts.values[prompts.starts] == begin).all():
        return first, prompts
    shorter = prompts.lengths - 1
    return [begin], Ragged.of(prompts.values[positions(prompts.starts + 1, shorter)], shorter)


def _answers(examples: Examples, tokenizer: Any, name: str) -> Ragged:
    """The answers' ids, each with exactly one end token as its last."""
    end = end_token(tokenizer)
    closing = encode([render_end(tokenizer, name)], tokenizer, special_tokens=False).values
    found = np.flatnonzero(closing == end)
    tail = closing[: found[0] + 1] if len(found) else np.append(closing, end)
    bodies = encode(examples.texts["output"], tokenizer, special_tokens=False)
    lengths = bodies.lengths + len(tail)
    values = np.empty(int(lengths.sum()), dtype=np.int32)
    starts = offsets_of(lengths)[:-1]
    values[positions(starts, bodies.lengths)] = bodies.values
    tails = np.full(len(bodies.lengths), len(tail), dtype=np.int64)
    values[positions(starts + bodies.lengths, tails)] = np.tile(tail, len(tails))
    return Ragged.of(values, lengths)


def end_token(tokenizer: Any) -> int:
    """The id that ends an answer or a document. Raises DataError where the tokenizer has none."""
    end = getattr(tokenizer, "eos_token_id", None)
    if end is None:
        raise DataError(
            Problem(
                where="model",
                what="the tokenizer has no end token, so the model could not learn to stop",
                right="a tokenizer with eos_token in its tokenizer_config.json",
                type="another model_name_or_path, or add eos_token to the tokenizer's files",
            )
        )
    return int(end)


def _put_together(first: list[int], prompts: Ragged, kept: Int64, answers: Ragged) -> tuple[Ragged, Bool]:
    lengths = len(first) + kept + answers.lengths
    starts = offsets_of(lengths)[:-1]
    values = np.empty(int(lengths.sum()), dtype=np.int32)
    opened = np.full(len(lengths), len(first), dtype=np.int64)
    values[positions(starts, opened)] = np.tile(np.asarray(first, dtype=np.int32), len(lengths))
    right = prompts.starts + prompts.lengths - kept
    values[positions(starts + len(first), kept)] = prompts.values[positions(right, kept)]
    answered = positions(starts + len(first) + kept, answers.lengths)
    values[answered] = answers.values
    trained = np.zeros(len(values), dtype=np.bool_)
    trained[answered] = True
    return Ragged.of(values, lengths), trained


def _lost(examples: Examples, fits: Int64, max_length: int, *, needed: int) -> tuple[str, ...]:
    num_lost = len(examples) - len(fits)
    if not num_lost:
        return ()
    lost = sorted(set(range(len(examples))) - set(fits.tolist()))
    line = examples.lines[lost[0]]
    said = f"{num_lost:,} of {len(examples):,} rows have an answer that does not fit max_length {max_length}"
    if num_lost > MOST_LOST * len(examples):
        raise DataError(
            Problem(
                where=f"{examples.path}:{line}",
                what=f"{said} (this is the first)",
                right=f"at most {MOST_LOST:.0%} of the rows may be lost: they would train nothing",
                type=f"data.max_length={needed} (the longest answer's need), or shorter answers in the file",
            )
        )
    return (f"{examples.path.name}: {said} and are left out (first at line {line:,})",)
