"""Rows as a task sees them: texts by role, turns, dialogues, labels, and the line that each came from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from launcher.data.picked import pick
from launcher.data.ragged import Float32, Int64

BLOCK_ROWS = 4096

Speaks = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message of a conversation. `trained`: what the file says of it; None: the recipe decides.

    `calls`: the tools that an assistant calls, as chat templates take them: ({"name", "arguments"}, ...).
    `reasoning`: what was thought before the text.
    """

    role: Speaks
    text: str
    trained: bool | None = None
    calls: tuple[dict[str, object], ...] = ()
    reasoning: str = ""


@dataclass(frozen=True, kw_only=True)
class Dialogues:
    """Every utterance of a file in the order of speaking, one dialogue after another.

    `offsets` (int64[dialogues + 1]): the utterances of dialogue d are offsets[d] to offsets[d + 1] - 1.
    Also the utterances whose rows were drawn away, held out, or left out are here: a context needs them.
    """

    texts: Sequence[str]
    speakers: Sequence[str]
    offsets: Int64


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Rows of one layout.

    `texts` by role: `text`; `text`, `pair`; `instruction`, `input`, `output`; `prompt`, `completion`;
    `text`, `speaker` (dialogue); none where rows are conversations.
    `labels`: class ids int64[rows]; multi-label 0/1 float32[rows, classes]; regression float32[rows].
    `turns`: conversations, with `tools` (JSON text, "" for none) a row.
    `utterances` (int64[rows]): where each row stands in `dialogues`.
    `files`: the file of each row, where `path` is a folder or a pattern.

    The texts of many rows lie in a file: go through them in order, or in blocks.
    """

    layout: str
    texts: Mapping[str, Sequence[str]]
    labels: Int64 | Float32 | None
    lines: Sequence[int]
    path: Path
    turns: Sequence[tuple[Turn, ...]] | None = None
    tools: Sequence[str] | None = None
    dialogues: Dialogues | None = None
    utterances: Int64 | None = None
    files: Sequence[Path] | None = None

    def __len__(self) -> int:
        """Rows."""
        return len(self.lines)

    def take(self, rows: Sequence[int] | Int64) -> "Examples":
        """Those rows only, in that order. `dialogues` stay whole."""
        index = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            texts={role: pick(column, index) for role, column in self.texts.items()},
            labels=None if self.labels is None else self.labels[index],
            lines=pick(self.lines, index),
            turns=None if self.turns is None else pick(self.turns, index),
            tools=None if self.tools is None else pick(self.tools, index),
            utterances=None if self.utterances is None else self.utterances[index],
            files=None if self.files is None else pick(self.files, index),
        )

    def blocks(self) -> Iterator["Examples"]:
        """All rows in examples of at most `BLOCK_ROWS`, whose texts are in memory."""
        for start in range(0, len(self), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            yield replace(
                self,
                texts={role: column[part] for role, column in self.texts.items()},
                labels=None if self.labels is None else self.labels[part],
                lines=self.lines[part],
                turns=None if self.turns is None else self.turns[part],
                tools=None if self.tools is None else self.tools[part],
                utterances=None if self.utterances is None else self.utterances[part],
                files=None if self.files is None else self.files[part],
            )

    def where(self, row: int) -> str:
        """`file:line` of a row."""
        return f"{self.path if self.files is None else self.files[row]}:{self.lines[row]}"

    def dialogue_of(self, row: int) -> tuple[int, int]:
        """(dialogue number, how many of its utterances come before this row's)."""
        assert self.dialogues is not None and self.utterances is not None, "rows of a dialogue layout"
        place = int(self.utterances[row])
        number = int(np.searchsorted(self.dialogues.offsets, place, side="right")) - 1
        return number, place - int(self.dialogues.offsets[number])
