"""Tiny models of every architecture that a shipped recipe names, without a network."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, AutoTokenizer

from launcher.errors import RecipeError
from launcher.models import catalogue
from launcher.models.load_torch import load_model
from launcher.models.options import ModelOptions
from launcher.recipe import library
from launcher.recipe.load import load_recipe
from launcher.rehearse.model_torch import write_model
from tests.tiny import write_llama

TEXTS = ["the film was good", "the plot was not so good"] * 4


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def _write(folder: Path, name: str, task: str, **options: Any) -> Any:
    return write_model(
        ModelOptions(model_name_or_path=name, **options), folder, task=task, seed=1, texts=TEXTS
    )


def _one_of_each_kind() -> list[str]:
    """A recipe for every architecture and task in the library: sizes are made equal anyway."""
    kinds: dict[tuple[str, object], str] = {}
    for name in library.names():
        recipe = load_recipe(name).recipe
        facts = catalogue.config(recipe.model.model_name_or_path) or {}
        kinds.setdefault((recipe.task, facts.get("model_type")), name)
    return list(kinds.values())


@pytest.mark.parametrize("name", _one_of_each_kind())
def test_model_of_a_shipped_recipe_is_built_and_loads_for_its_task(name: str, tmp_path: Path) -> None:
    recipe = load_recipe(name).recipe
    hub_id = recipe.model.model_name_or_path
    made = _write(tmp_path, hub_id, recipe.task)
    assert made.is_stand_in and made.vocabulary_size < 1000
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    config = AutoConfig.from_pretrained(tmp_path)
    facts = catalogue.config(hub_id)
    assert facts is not None and config.model_type == facts["model_type"]
    assert (config.num_hidden_layers, config.vocab_size) == (2, len(tokenizer))
    assert config.pad_token_id == tokenizer.pad_token_id
    model = load_model(
        ModelOptions(model_name_or_path=str(tmp_path)),
        task=recipe.task,
        dtype="float32",
        label_names=("a", "b"),
        pad_token_id=tokenizer.pad_token_id,
    )
    assert sum(parameter.numel() for parameter in model.parameters()) < 1_000_000


def test_stand_in_marks_a_classifiers_text_and_keeps_every_character(tmp_path: Path) -> None:
    _write(tmp_path, "FacebookAI/roberta-large", "classification")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    ids = tokenizer("naïve 文 text")["input_ids"]
    assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
    assert tokenizer.decode(ids, skip_special_tokens=True) == "naïve 文 text"


def test_stand_in_of_a_chat_model_has_a_chat_template(tmp_path: Path) -> None:
    _write(tmp_path / "chat", "Qwen/Qwen2.5-7B-Instruct", "causal_lm")
    _write(tmp_path / "base", "Qwen/Qwen2.5-0.5B", "causal_lm")
    assert AutoTokenizer.from_pretrained(tmp_path / "chat").chat_template
    assert not AutoTokenizer.from_pretrained(tmp_path / "base").chat_template


def test_folder_keeps_its_tokenizer(tmp_path: Path) -> None:
    folder = write_llama(tmp_path / "real", num_hidden_layers=5)
    made = _write(tmp_path / "made", str(folder), "causal_lm")
    real = AutoTokenizer.from_pretrained(folder)
    assert not made.is_stand_in
    assert AutoTokenizer.from_pretrained(tmp_path / "made").get_vocab() == real.get_vocab()
    config = AutoConfig.from_pretrained(tmp_path / "made")
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (2, 4, 2)


def test_config_alone_is_enough(tmp_path: Path) -> None:
    AutoConfig.for_model("gpt2", n_layer=9).save_pretrained(tmp_path / "real")
    made = _write(tmp_path / "made", str(tmp_path / "real"), "causal_lm")
    assert made.is_stand_in and made.architecture == "GPT2LMHeadModel"
    assert AutoConfig.from_pretrained(tmp_path / "made").n_layer == 2


def test_unknown_model_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="model.model_name_or_path=FOLDER"):
        _write(tmp_path, "someone/some-model", "causal_lm")


def test_catalogue_names_are_the_shipped_recipes_models() -> None:
    wanted = {load_recipe(name).recipe.model.model_name_or_path for name in library.names()}
    assert wanted <= set(catalogue.names())
    assert catalogue.config("someone/some-model") is None
