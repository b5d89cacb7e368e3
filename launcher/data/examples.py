"""Rows as a task sees them: texts by role, turns, dialogues, labels, and the line that each came from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from launcher.data.ragged import Float32, Int64

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

    texts: list[str]
    speakers: list[str]
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
    """

    layout: str
    texts: dict[str, list[str]]
    labels: Int64 | Float32 | None
    lines: list[int]
    path: Path
    turns: list[tuple[Turn, ...]] | None = None
    tools: list[str] | None = None
    dialogues: Dialogues | None = None
    utterances: Int64 | None = None
    files: list[Path] | None = None

    def __len__(self) -> int:
        """Rows."""
        return len(self.lines)

    def take(self, rows: Sequence[int] | Int64) -> "Examples":
        """Those rows only, in that order. `dialogues` stay whole."""
        index = np.asarray(rows, dtype=np.int64)
        chosen: list[int] = index.tolist()
        return replace(
            self,
            texts={role: [column[row] for row in chosen] for role, column in self.texts.items()},
            labels=None if self.labels is None else self.labels[index],
            lines=[self.lines[row] for row in chosen],
            turns=None if self.turns is None else [self.turns[row] for row in chosen],
            tools=None if self.tools is None else [self.tools[row] for row in chosen],
            utterances=None if self.utterances is None else self.utterances[index],
            files=None if self.files is None else [self.files[row] for row in chosen],
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
