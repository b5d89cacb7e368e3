"""All rows of a split as token ids."""

from typing import Any

from launcher.data.examples import Examples
from launcher.data.label_rows import classified
from launcher.data.language_rows import answered, documents
from launcher.data.lengths import Length
from launcher.data.options import DataOptions
from launcher.data.packed_rows import packed
from launcher.data.relevance import Scores
from launcher.data.token_store import TokenStore, shifted_targets
from launcher.data.wanted import Wanted

__all__ = ["TokenStore", "packed", "shifted_targets", "tokenise"]


def tokenise(
    examples: Examples,
    tokenizer: Any,
    *,
    options: DataOptions,
    task: str,
    template: str = "auto",
    limit: int | None = None,
    length: Length | None = None,
    scores: Scores | None = None,
    token_types: bool = False,
) -> TokenStore:
    """Token ids of all rows, none longer than the length that the options choose (or the model's `limit`).

    `length`: what was chosen on the training rows, for evaluation rows. `scores`: which turns of a dialogue
    matter, where the options ask for attention. `token_types`: the model learns which text of a pair an id
    belongs to. Raises DataError when more than one row in a hundred keeps
    no answer, or the tokenizer has no end token; BadValue for an overflow policy that a layout cannot have.
    """
    wanted = Wanted(
        tokenizer=tokenizer,
        options=options,
        template=template,
        limit=limit,
        length=length,
        scores=scores,
        has_token_types=token_types,
    )
    if task != "causal_lm":
        return classified(examples, wanted, task)
    store = documents(examples, wanted) if examples.layout == "plain_text" else answered(examples, wanted)
    return packed(store) if options.packing else store
