"""Marks that other tools write behind a completion: the end token stands for them, so they go."""

from collections.abc import Sequence
from typing import Any

MARKS = ("<|endoftext|>", "</s>", "<|im_end|>", "<|eot_id|>", "<eos>", "<|end_of_text|>", "<end_of_turn>")


def without_marks(texts: Sequence[str], tokenizer: Any) -> tuple[list[str], int]:
    """The texts without such a mark at their end, and how many had one."""
    own = getattr(tokenizer, "eos_token", None)
    marks = (*MARKS, own) if isinstance(own, str) and own else MARKS
    ended = [_bare(text, marks) for text in texts]
    return ended, sum(len(bare) != len(text) for bare, text in zip(ended, texts, strict=True))


def _bare(text: str, marks: tuple[str, ...]) -> str:
    stripped = text.rstrip()
    mark = next((each for each in marks if stripped.endswith(each)), None)
    return text if mark is None else stripped.removesuffix(mark)
