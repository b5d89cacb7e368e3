"""What a trained model answers is what its forward pass says, token by token, whatever its method."""

import json
from pathlib import Path

import pytest
import torch

from launcher.adapters.options import METHODS
from launcher.cli.main import main
from launcher.export.predict import Predictor
from tests.export.test_merge import finished

PROMPT = torch.tensor([[5, 9, 12, 7]])
NUM_NEW = 10


@torch.inference_mode()
def one_by_one(predictor: Predictor) -> list[int]:
    """The likeliest next token of the whole text so far, again and again: no cache is kept."""
    ids = PROMPT
    while ids.shape[1] < PROMPT.shape[1] + NUM_NEW and ids[0, -1] != predictor.tokenizer.eos_token_id:
        logits = predictor.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    found: list[int] = ids[0].tolist()
    return found


def test_an_answer_ends_where_it_was_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, lengths = finished(tmp_path), []
    for most in ("1", "6"):
        assert main(["predict", str(run), "good film", "--max-new-tokens", most, "--json"]) == 0
        lengths.append(len(json.loads(capsys.readouterr().out)["answer"].split()))
    assert lengths[0] <= 1 < lengths[1] <= 6


@pytest.mark.parametrize("method", [each.name for each in METHODS])
def test_an_answer_is_what_the_forward_pass_says_token_by_token(method: str, tmp_path: Path) -> None:
    predictor = Predictor(finished(tmp_path, method=method))
    wanted = one_by_one(predictor)
    assert predictor.continued(PROMPT, NUM_NEW)[0].tolist() == wanted
    assert len(set(wanted[PROMPT.shape[1] :])) > 1  # one token again and again would tell nothing
