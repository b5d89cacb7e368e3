"""From the words of a freezing plan (`head`, `top 2 blocks`, a name, a glob) to parameters. No torch.

Works on the names of parameters only: the real ones, read off the module tree before any weight is read, or
those that a configuration lets one foresee.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from launcher.errors import BadValue, Problem
from launcher.registry import nearest

_BLOCK = re.compile(r"(?:^|\.)(\d+)\.")
_EMBEDDING = re.compile(r"embed|(^|\.)(wte|wpe)(\.|$)")
_END = re.compile(r"(top|bottom) (\d+) (?:block|layer)s?")
_RANGE = re.compile(r"(?:block|layer)s? (\d+)(?: ?- ?(\d+))?")
_SLICE = re.compile(r".*\[(-?\d*):(-?\d*)\]")
WORDS = ("all", "embeddings", "blocks", "head")
# Names that some architectures have and others lack: beside a part that is there, a notice is enough.
ALTERNATIVES = ("classifier", "pooler", "score", "lm_head", "pre_classifier", "final_norm", "norm", "ln_f")
FORMS = "embeddings, blocks, head, all, top N blocks, bottom N blocks, blocks A-B, or a name or glob"

Test = Callable[[str], bool]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The parameters that a list of parts names, and a line for each part that this model lacks."""

    names: frozenset[str]
    notices: tuple[str, ...] = ()


def block_of(name: str) -> int | None:
    """The index of the block that a parameter belongs to; None outside the blocks."""
    found = _BLOCK.search(name)
    return int(found.group(1)) if found else None


def num_blocks(names: Iterable[str]) -> int:
    """Blocks that the names count."""
    return max((index + 1 for name in names if (index := block_of(name)) is not None), default=0)


def is_embedding(name: str) -> bool:
    """Whether the parameter lies in front of the blocks."""
    return block_of(name) is None and bool(_EMBEDDING.search(name))


def is_head(name: str) -> bool:
    """Whether the parameter follows the blocks: final norm, pooler, classifier, output layer."""
    return block_of(name) is None and not is_embedding(name)


def resolve(parts: Sequence[str], names: Sequence[str], *, where: str) -> Found:
    """The parameters among `names` that the parts stand for.

    Raises BadValue, with the names that exist, for a part that names nothing. A part that other
    architectures have (RoBERTa lacks BERT's pooler) is a notice where another part of the list is there.
    """
    by_part = {part: _matching(part, names, where) for part in parts}
    missing = [part for part, found in by_part.items() if not found]
    there = [part for part, found in by_part.items() if found]
    for part in missing:
        if not (part in ALTERNATIVES and there):
            raise _nothing(part, names, where)
    lines = (f"{where}: this model has no '{part}', only {', '.join(there)}" for part in missing)
    return Found(names=frozenset().union(*by_part.values()), notices=tuple(lines))


def form_problem(part: str, where: str) -> Problem | None:
    """What can be told of a part without a model: a slice or a sentence that is no form of ours."""
    if found := _SLICE.fullmatch(part):
        return _slice(part, found.group(1), found.group(2), where)
    is_form = _END.fullmatch(part) or _RANGE.fullmatch(part) or " " not in part.strip()
    if part.strip() and is_form:
        return None
    return Problem(
        where=where, what=f"'{part}' names no part of a model", right=FORMS, type=f"{where}: top 2 blocks"
    )


def _slice(part: str, start: str, end: str, where: str) -> Problem:
    typed = f"bottom {end} blocks" if not start and end.isdigit() else "top 4 blocks"
    if start.isdigit() and end.isdigit():
        typed = f"blocks {start}-{int(end) - 1}"
    return Problem(
        where=where,
        what=f"'{part}' is a slice, which is not read here",
        right="top N blocks, bottom N blocks, or blocks A-B (both included, counted from 0)",
        type=f"{where}: {typed}",
    )


def _matching(part: str, names: Sequence[str], where: str) -> set[str]:
    test = _test(part, num_blocks(names), where)
    return {name for name in names if test(name)}


def _test(part: str, blocks: int, where: str) -> Test:
    """Whether a parameter belongs to the part."""
    words: dict[str, Test] = {
        "all": lambda name: True,
        "embeddings": is_embedding,
        "blocks": lambda name: block_of(name) is not None,
        "head": is_head,
    }
    if part in words:
        return words[part]
    if chosen := _blocks(part, blocks, where):
        return lambda name: block_of(name) in chosen
    return lambda name: _is_named(name, part)


def _blocks(part: str, blocks: int, where: str) -> range | None:
    """The blocks that `top N blocks`, `bottom N blocks` or `blocks A-B` counts; None for other parts."""
    if found := _END.fullmatch(part):
        count = int(found.group(2))
        chosen = range(blocks - count, blocks) if found.group(1) == "top" else range(count)
    elif found := _RANGE.fullmatch(part):
        first = int(found.group(1))
        chosen = range(first, int(found.group(2) or first) + 1)
    else:
        return None
    if not chosen or chosen.start < 0 or chosen.stop > blocks:
        raise BadValue(
            Problem(
                where=where,
                what=f"'{part}', and the model has {blocks} blocks (0 to {blocks - 1})",
                right=f"at most {blocks} blocks",
                type=f"{where}: top {max(1, blocks // 2)} blocks",
            )
        )
    return chosen


def _is_named(name: str, part: str) -> bool:
    """A dotted piece of the name, or a glob over the name or over a piece of it."""
    if not any(sign in part for sign in "*?["):
        return f".{part}." in f".{name}."
    return any(fnmatchcase(name, form) for form in (part, f"*.{part}", f"{part}.*", f"*.{part}.*"))


def pieces(names: Iterable[str]) -> list[str]:
    """The names that a person may type: modules outside the blocks, and what one block holds."""
    found: dict[str, None] = {}
    for name in names:
        inside = _BLOCK.split(f".{name}")[-1] if block_of(name) is not None else name
        module = inside.rpartition(".")[0]
        found[module or inside] = None
    return [*found]


def _nothing(part: str, names: Sequence[str], where: str) -> BadValue:
    known = pieces(names)
    leaves = {each.rsplit(".", 1)[-1]: each for each in known}
    close = nearest(part, [*WORDS, *leaves, *known]) or "head"
    shown = ", ".join(known[:24]) + (f" and {len(known) - 24} more" if len(known) > 24 else "")
    return BadValue(
        Problem(
            where=where,
            what=f"no parameter of this model matches '{part}'",
            right=f"{FORMS}; names that exist: {shown}",
            type=f"{where}: {close}",
        )
    )
