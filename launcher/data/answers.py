"""Prompt and answer as one row of ids, of which the answer and its end token are trained."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from launcher.data.conversations import Talks
from launcher.data.encode import encode
from launcher.data.ends import without_marks
from launcher.data.examples import Examples
from launcher.data.joined_parts import Part, Told
from launcher.data.number_file import NumberWriter
from launcher.data.ragged import Bool, Int32, Int64, Ragged, offsets_of, positions
from launcher.data.templates import FOR_TURNS, choose, prompt_opening, render_end, render_prompts
from launcher.errors import DataError, Problem

MOST_LOST = 0.01


@dataclass(frozen=True, kw_only=True)
class Joined:
    """Rows of prompt and answer, which of their ids are trained, and what had to be cut."""

    rows: Ragged
    trained: Bool
    num_truncated: int
    notices: tuple[str, ...]


def join_answers(
    examples: Examples,
    tokenizer: Any,
    template: str,
    max_length: int,
    *,
    train_on: str = "completions",
    most_lost: float = MOST_LOST,
    cut_answers: bool = False,
) -> Joined:
    """Each example's ids. A row that is too long loses the left of its prompt, never its answer.

    Conversations lose their oldest exchanges first. Rows whose answer alone does not fit, or that have
    none, are left out and counted. Raises DataError above the share `most_lost`.
    `train_on`: completions, or all (the prompts' ids too). `cut_answers`: an answer that does not fit loses
    its end instead, for rows to evaluate on.
    """
    name = choose(template, tokenizer, examples.layout)
    join = _join_pairs if examples.turns is None else _join_talks
    values, marks, told = NumberWriter(np.int32), NumberWriter(np.bool_), Told()
    lengths = [np.zeros(0, dtype=np.int64)]
    for block in examples.blocks():
        part = join(block, tokenizer, name, max_length, cut_answers)
        values.add(part.rows.values)
        marks.add(np.ones_like(part.trained) if train_on == "all" else part.trained)
        lengths.append(part.rows.lengths)
        told.add(part, len(block))
    return Joined(
        rows=Ragged.of(values.done(), np.concatenate(lengths)),
        trained=marks.done(),
        num_truncated=told.num_cut,
        notices=(*told.notices(examples), *told.lost(examples, max_length, most_lost)),
    )


def _join_pairs(examples: Examples, tokenizer: Any, name: str, max_length: int, cut_answers: bool) -> Part:
    examples, num_marks = _as_instructions(examples, tokenizer)
    first, prompts = _prompts(examples, tokenizer, name)
    answers, num_ends_cut = _answers(examples, tokenizer, name), 0
    if cut_answers:
        answers, num_ends_cut = _without_ends(answers, prompts, first, max_length)
    # One id must stand in front of the answer: it predicts the answer's first.
    room = max_length - answers.lengths - len(first)
    fits = np.flatnonzero((room >= (0 if first else 1)) & (answers.lengths > 0)).astype(np.int64)
    needed = int((max_length - room).max()) + (not first)
    prompts, answers, room = prompts.take(fits), answers.take(fits), room[fits]
    kept = np.minimum(prompts.lengths, room)
    rows, trained = _put_together(first, prompts, kept, answers)
    return Part(
        rows=rows,
        trained=trained,
        fits=fits,
        needed=needed,
        num_cut=int((kept < prompts.lengths).sum()),
        num_ends_cut=num_ends_cut,
        num_marks=num_marks,
    )


def _without_ends(answers: Ragged, prompts: Ragged, first: list[int], max_length: int) -> tuple[Ragged, int]:
    """Answers cut to what stands beside half a row of their prompt, and how many were too long."""
    beside = np.minimum(prompts.lengths, max_length // 2) + len(first)
    room = np.maximum(max_length - np.maximum(beside, 1), 0)
    long = answers.lengths > np.maximum(max_length - max(1, len(first)), 0)
    kept = np.where(long, np.minimum(answers.lengths, room), answers.lengths)
    return Ragged.of(answers.values[positions(answers.starts, kept)], kept), int(long.sum())


def _as_instructions(examples: Examples, tokenizer: Any) -> tuple[Examples, int]:
    """A prompt and its completion as an instruction and its answer, and how many marks were taken off."""
    if examples.layout != "prompt_completion":
        return examples, 0
    answers, number = without_marks(examples.texts["completion"], tokenizer)
    nothing = [""] * len(examples)
    texts = {"instruction": examples.texts["prompt"], "input": nothing, "output": answers}
    return replace(examples, texts=texts), number


def _join_talks(examples: Examples, tokenizer: Any, name: str, max_length: int, cut_answers: bool) -> Part:
    talks = Talks(examples, tokenizer, name, end_token(tokenizer))
    rows, trained = talks.fit(max_length)
    counts = talks.num_trained(rows, trained)
    # The last answer must fit with one id in front of it; what stands left of that can be cut.
    last = _last_spans(rows, trained)
    fits = np.flatnonzero((counts > 0) & ((last < max_length) | cut_answers)).astype(np.int64)
    kept = np.minimum(rows.lengths[fits], max_length)
    starts = rows.starts[fits] + rows.lengths[fits] - kept
    ends_cut = np.flatnonzero(last[fits] >= max_length)
    answered = rows.offsets[1:][fits] - last[fits]
    beside = np.minimum(answered - rows.starts[fits], max(1, max_length // 2))
    starts[ends_cut] = (answered - beside)[ends_cut]
    begin = getattr(tokenizer, "bos_token_id", None)
    places = positions(starts, kept)
    values, marks = rows.values[places], trained[places]
    cut = np.flatnonzero(starts > rows.starts[fits])
    _begin_again(values, marks, offsets_of(kept)[:-1][cut], rows.values[rows.starts[fits][cut]], begin)
    return Part(
        rows=Ragged.of(values, kept),
        trained=marks,
        fits=fits,
        needed=int(last.max(initial=0)) + 1,
        num_cut=len(cut) + talks.num_shortened,
        num_ends_cut=len(ends_cut),
        said=tuple(talks.notices()),
    )


def _begin_again(values: Int32, marks: Bool, heads: Int64, firsts: Int32, begin: int | None) -> None:
    """In rows whose left was cut, put the begin token where they now begin, if they had it."""
    if begin is not None:
        heads = heads[firsts == begin]
        values[heads], marks[heads] = begin, False


def _last_spans(rows: Ragged, trained: Bool) -> Int64:
    """From the start of the last trained stretch to the row's end, in ids; 0 where none is trained."""
    before = np.concatenate([[False], trained[:-1]])
    before[rows.starts[rows.lengths > 0]] = False
    opens = np.where(trained & ~before, np.arange(len(trained)), -1)
    latest = np.maximum.accumulate(opens) if len(opens) else opens
    ends = np.maximum(rows.offsets[1:] - 1, 0)
    found = latest[ends] if len(latest) else np.zeros(len(ends), dtype=np.int64)
    inside = (found >= rows.starts) & (rows.lengths > 0)
    spans: Int64 = np.where(inside, rows.offsets[1:] - found, 0).astype(np.int64)
    return spans


def _prompts(examples: Examples, tokenizer: Any, name: str) -> tuple[list[int], Ragged]:
    """The ids that begin every prompt and survive a cut, and the prompts without them."""
    texts = render_prompts(examples.texts["instruction"], examples.texts["input"], tokenizer, name)
    prompts = encode(texts, tokenizer, special_tokens=False)
    first = prompt_opening(tokenizer, name)
    begin = getattr(tokenizer, "bos_token_id", None)
    if name not in FOR_TURNS or begin is None or not len(texts) or not (prompts.lengths > 0).all():
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
