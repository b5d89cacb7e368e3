"""Which earlier turns a model itself looks at from an utterance: attention mass, measured in preparation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from launcher.data.ragged import Ragged
from launcher.data.relevance import Asked

_ROWS_AT_ONCE = 16


class AttentionScores:
    """Score of a turn: the share of its attention that the utterance gives to the turn's ids.

    Averaged over the utterance's ids, over heads and over layers, in the encoder as it was pretrained, with
    all turns that its positions have room for in front of the utterance. Farther turns score below all.
    """

    def __init__(self, model: Any, *, limit: int | None, pad_token_id: int) -> None:
        """`model` must return its attentions (eager kernel); `limit`: most ids that it takes."""
        self.model, self.limit, self.pad_token_id = model.eval(), limit, pad_token_id

    def __call__(self, rows: Sequence[Asked], turns: Ragged, opening: Sequence[int]) -> list[Sequence[float]]:
        """A score for each turn of each row."""
        found: list[Sequence[float]] = [[]] * len(rows)
        sizes = [_size(turns, [place, *before]) for place, before in rows]
        order = np.argsort(sizes, kind="stable").tolist()  # rows of like length together
        for start in range(0, len(order), _ROWS_AT_ONCE):
            some = order[start : start + _ROWS_AT_ONCE]
            for row, scores in zip(
                some, self._batch([rows[row] for row in some], turns, opening), strict=True
            ):
                found[row] = scores
        return found

    def _batch(self, rows: Sequence[Asked], turns: Ragged, opening: Sequence[int]) -> list[list[float]]:
        shown = [self._shown(row, turns, len(opening)) for row in rows]
        lengths = [len(opening) + _size(turns, each) for each in shown]
        width = max(lengths)
        ids = torch.full((len(rows), width), self.pad_token_id)
        part = torch.full((len(rows), width), -1)  # the turn that each id belongs to, by its place in the row
        for number, each in enumerate(shown):
            pieces = [turns.values[turns.offsets[turn] : turns.offsets[turn + 1]] for turn in each]
            ids[number, : lengths[number]] = torch.from_numpy(np.concatenate([list(opening), *pieces]))
            of_turn = np.repeat(np.arange(len(each)), [len(piece) for piece in pieces])
            part[number, len(opening) : lengths[number]] = torch.from_numpy(of_turn)
        mass = self._mass(ids, part)
        return [
            _nearest_first(mass[number, : len(each) - 1].tolist(), len(rows[number][1]))
            for number, each in enumerate(shown)
        ]

    def _shown(self, row: Asked, turns: Ragged, num_opening: int) -> list[int]:
        """The turns from the farthest that has room to the utterance."""
        place, nearest = row
        room = (self.limit or 2**30) - num_opening - _size(turns, [place])
        shown = [place]
        for turn in nearest:
            room -= _size(turns, [turn])
            if room < 0:
                break
            shown.append(turn)
        if _size(turns, [place]) + num_opening > (self.limit or 2**30):
            return [place]
        return shown[::-1]

    def _mass(self, ids: Tensor, part: Tensor) -> Tensor:
        """[rows, turns]: attention from the last turn's ids to each turn's, averaged."""
        if self.limit is not None:
            ids, part = ids[:, : self.limit], part[:, : self.limit]
        device = next(self.model.parameters()).device
        # Ids in front of the first turn belong to the row; those behind its last turn are padding.
        mask = torch.arange(ids.shape[1]) < (part >= 0).sum(1, keepdim=True) + _front(part)
        with torch.no_grad():
            layers = self.model(
                input_ids=ids.to(device), attention_mask=mask.long().to(device), output_attentions=True
            ).attentions
        attention = torch.stack([layer.float().mean(1) for layer in layers]).mean(0).cpu()  # [rows, from, to]
        last = part.max(1, keepdim=True).values
        target = (part == last).float()
        given = (attention * target[:, :, None]).sum(1) / target.sum(1, keepdim=True)  # [rows, to]
        turns = torch.zeros(len(ids), int(last.max()) + 1)
        return turns.scatter_add_(1, part.clamp_min(0), given * (part >= 0))


def _size(turns: Ragged, some: Sequence[int]) -> int:
    """Ids of these turns together."""
    return sum(int(turns.offsets[turn + 1] - turns.offsets[turn]) for turn in some)


def _front(part: Tensor) -> Tensor:
    """How many ids stand in front of the first turn, [rows, 1]."""
    return (part >= 0).int().argmax(1, keepdim=True)


def _nearest_first(scores: list[float], num_turns: int) -> list[float]:
    """The scores from the nearest turn on; turns that were not shown score -1."""
    return scores[::-1] + [-1.0] * (num_turns - len(scores))
