"""Rows that a language model learns to write: answers to prompts, conversations, and running text."""

from launcher.data.blocks import join_blocks
from launcher.data.examples import Examples
from launcher.data.lengths import Length
from launcher.data.overflow import drop
from launcher.data.pack import pieces
from launcher.data.ragged import Bool, Ragged
from launcher.data.token_store import TokenStore, marks_of, shifted_targets
from launcher.data.wanted import Wanted, long_notice, require

UNLIMITED = 2**30


def answered(examples: Examples, wanted: Wanted) -> TokenStore:
    """Prompts with their answers, or conversations."""
    why = "answers: they stay whole, the prompt loses its beginning"
    require(wanted.overflow, ("auto", "drop"), why)
    length = wanted.first_length()
    most = length.value
    if wanted.length is None and not isinstance(wanted.options.max_length, int) or wanted.overflow == "drop":
        most = UNLIMITED  # rows are measured, or dropped, before anything is cut
    joined = wanted.joined(examples, most)
    if most == UNLIMITED and wanted.overflow != "drop":
        length = wanted.length_for(joined.rows.lengths)
        if int(joined.rows.lengths.max(initial=0)) > length.value:
            joined = wanted.joined(examples, length.value)
    if wanted.overflow != "drop":
        what = "lose the beginning of the prompt"
        cut = long_notice(examples, joined.num_truncated, length.value, what)
        return _language(joined.rows, joined.trained, length, joined.num_truncated, (*joined.notices, *cut))
    length = wanted.length_for(joined.rows.lengths)
    kept = drop(joined.rows, length.value)
    assert kept.sources is not None or not kept.num_long
    trained = joined.trained
    if kept.sources is not None:
        trained = marks_of(joined.rows, trained, kept.sources)
    said = long_notice(examples, kept.num_long, length.value, kept.notice)
    return _language(kept.rows, trained, length, kept.num_long, (*joined.notices, *said))


def documents(examples: Examples, wanted: Wanted) -> TokenStore:
    """Running text in blocks; in pieces of documents where they are packed later."""
    require(wanted.overflow, ("auto",), "plain text: it is cut into blocks, nothing is lost")
    length = wanted.first_length()
    if wanted.options.packing:
        rows = pieces(examples, wanted.tokenizer, length.value)
        return _language(rows, None, length, 0, ())
    rows = join_blocks(examples, wanted.tokenizer, length.value)
    said = f"{examples.path.name}: {len(examples):,} documents, {len(rows.values):,} tokens, "
    said += f"{len(rows.offsets) - 1:,} blocks of {length.value} tokens"
    return _language(rows, None, length, 0, (said,))


def _language(
    rows: Ragged, trained: Bool | None, length: Length, num_truncated: int, notices: tuple[str, ...]
) -> TokenStore:
    return TokenStore(
        task="causal_lm",
        input_ids=rows.values,
        offsets=rows.offsets,
        labels=None,
        trained=trained,
        num_targets=shifted_targets(rows.offsets, trained),
        max_length=length.value,
        length_reason=length.reason,
        num_truncated=num_truncated,
        notices=notices,
    )
