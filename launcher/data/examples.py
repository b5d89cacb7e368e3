"""Rows as a task sees them: texts by role, label ids, and the line of the file that each came from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from launcher.data.ragged import Int64


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Texts by role (`text`, or `instruction`, `input`, `output`); ids of the labels, if there are any."""

    layout: str
    texts: dict[str, list[str]]
    labels: Int64 | None
    lines: list[int]
    path: Path

    def __len__(self) -> int:
        """Rows."""
        return len(self.lines)

    def take(self, rows: Sequence[int] | Int64) -> "Examples":
        """Those rows only, in that order."""
        chosen = [int(row) for row in rows]
        texts = {role: [column[row] for row in chosen] for role, column in self.texts.items()}
        labels = None if self.labels is None else self.labels[np.asarray(chosen, dtype=np.int64)]
        return replace(self, texts=texts, labels=labels, lines=[self.lines[row] for row in chosen])
