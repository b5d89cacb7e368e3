"""Attention mass as a score: shares of one, by hand where attention is known, cut where positions end."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from launcher.data.attention_torch import AttentionScores
from launcher.data.options import DataOptions
from launcher.data.ragged import Ragged
from launcher.data.tokens import tokenise
from tests.data.test_context import dialogue

TURNS = Ragged.from_lists([[11, 12], [13], [14, 15, 16], [17, 18]])


class LooksAt(nn.Module):
    """A model of one layer and two heads that attends to ids by a table of weights."""

    def __init__(self, weights: dict[int, float]) -> None:
        super().__init__()
        self.weights, self.seen = weights, []
        self.anchor = nn.Parameter(torch.zeros(1))

    def forward(self, input_ids: Any, attention_mask: Any, output_attentions: bool) -> Any:
        assert output_attentions
        self.seen.append((input_ids.tolist(), attention_mask.tolist()))
        table = torch.tensor([[self.weights.get(id, 1.0) for id in row] for row in input_ids.tolist()])
        table = table * attention_mask
        shares = table / table.sum(1, keepdim=True)
        return SimpleNamespace(attentions=[shares[:, None, None, :].expand(-1, 2, input_ids.shape[1], -1)])


def test_a_turns_score_is_its_share_of_the_utterances_attention() -> None:
    """Row [1] 11 12 | 13 | 14 15 16 | 17 18 with weight 8 on 13: 8 of 16 shares."""
    model = LooksAt({13: 8.0})
    found = AttentionScores(model, limit=None, pad_token_id=0)([(3, [2, 1, 0])], TURNS, [1])
    assert found == [pytest.approx([3 / 16, 8 / 16, 2 / 16])]


def test_rows_of_different_length_share_a_batch_and_padding_takes_no_part() -> None:
    model = LooksAt({})
    found = AttentionScores(model, limit=None, pad_token_id=0)([(3, [2, 1, 0]), (1, [0])], TURNS, [1])
    assert found == [pytest.approx([3 / 9, 1 / 9, 2 / 9]), pytest.approx([2 / 4])]
    ids, mask = model.seen[0]
    assert ids[0] == [1, 11, 12, 13, 0, 0, 0, 0, 0] and mask[0] == [1, 1, 1, 1, 0, 0, 0, 0, 0]


def test_turns_beyond_the_positions_score_below_all() -> None:
    found = AttentionScores(LooksAt({}), limit=7, pad_token_id=0)([(3, [2, 1, 0])], TURNS, [1])
    assert found == [pytest.approx([3 / 7, 1 / 7, -1.0])] or found[0][2] == -1.0


def test_the_model_chooses_the_context(word_tokenizer) -> None:
    """Room for `the cat sat` or `not funny` and `good` beside the utterance: the model looks at `sat`."""
    sat = word_tokenizer.convert_tokens_to_ids("sat")
    scores = AttentionScores(LooksAt({sat: 50.0}), limit=512, pad_token_id=0)
    options = DataOptions(
        train_file="x", max_length=10, context={"turns": 4, "retention": "attention", "speakers": False}
    )
    store = tokenise(dialogue([4]), word_tokenizer, options=options, task="classification", scores=scores)
    assert word_tokenizer.decode(store.input_ids) == "[CLS] the cat sat [SEP] the cat was good [SEP]"
    assert np.diff(store.offsets).tolist() == [10]
