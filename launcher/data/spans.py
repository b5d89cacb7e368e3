"""Which parts of a rendered conversation are the assistant's: found by rendering its beginnings."""

from dataclasses import dataclass
from typing import Any

from launcher.data.examples import Turn
from launcher.data.templates import render_talk


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a rendered conversation; `trained` where the model must learn to write it."""

    text: str
    trained: bool


class Unstable(ValueError):
    """A template that writes earlier turns differently once others follow; the message shows where."""


def pieces_of(turns: tuple[Turn, ...], tools: str, tokenizer: Any, name: str) -> list[Piece]:
    """A conversation in order, up to the end of its last answer; what follows that trains nothing.

    An assistant's part begins where a prompt for it ends, and goes on to what ends the turn. Its text is
    therefore what prediction is asked to continue with, exactly. Raises Unstable, or what Jinja raises.
    """
    pieces: list[Piece] = []
    done = ""
    for place, turn in enumerate(turns):
        if turn.role != "assistant":
            continue
        before = render_talk(turns[:place], tools, tokenizer, name, add_generation_prompt=True)
        after = render_talk(turns[: place + 1], tools, tokenizer, name)
        _require_prefix(done, before, place)
        _require_prefix(before, after, place)
        answer = after[len(before) :].rstrip()
        pieces += [
            Piece(text=before[len(done) :], trained=False),
            Piece(text=answer, trained=turn.trained is not False),
        ]
        done = before + answer
    return pieces


def _require_prefix(beginning: str, whole: str, place: int) -> None:
    if whole.startswith(beginning):
        return
    same = next(
        (at for at, (one, other) in enumerate(zip(beginning, whole, strict=False)) if one != other),
        min(len(beginning), len(whole)),
    )
    raise Unstable(
        f"up to turn {place} it writes ...{beginning[max(0, same - 10) : same + 30]!r}, "
        f"later ...{whole[max(0, same - 10) : same + 30]!r}"
    )
