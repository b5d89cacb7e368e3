"""Words, names and globs of a freezing plan on the parameters of real architectures."""

from functools import cache

import pytest

from launcher.adapters.open_parts import form_problem, resolve
from launcher.errors import BadValue


@cache
def names_of(kind: str) -> tuple[str, ...]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

    small = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 64}
    sizes = {"gpt2": {"n_embd": 32, "n_layer": 4, "n_head": 4}, "bloom": {"hidden_size": 32, "n_layer": 4}}
    config = AutoConfig.for_model(kind, **sizes.get(kind, small), pad_token_id=0)
    is_decoder = kind in ("gpt2", "llama", "bloom")
    auto = AutoModelForCausalLM if is_decoder else AutoModelForSequenceClassification
    with torch.device("meta"):
        return tuple(name for name, _ in auto.from_config(config).named_parameters())


def found(kind: str, *parts: str) -> set[str]:
    return set(resolve(parts, names_of(kind), where="freeze.modules").names)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "electra", "gpt2", "llama", "bloom"])
def test_the_words_divide_every_model_into_three(kind: str) -> None:
    parts = [found(kind, word) for word in ("embeddings", "blocks", "head")]
    assert set.union(*parts) == found(kind, "all") == set(names_of(kind))
    assert sum(map(len, parts)) == len(names_of(kind)) and all(parts)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama"])
def test_blocks_are_counted_from_either_end(kind: str) -> None:
    assert found(kind, "top 1 block") == found(kind, "block 3")
    assert found(kind, "top 2 layers") == found(kind, "blocks 2-3")
    assert found(kind, "bottom 3 blocks") == found(kind, "blocks 0 - 2")
    assert found(kind, "top 4 blocks") == found(kind, "blocks")


def test_names_and_globs_match_dotted_pieces() -> None:
    assert found("bert", "pooler") == {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}
    assert found("bert", "classifier") == {"classifier.weight", "classifier.bias"}
    assert found("bert", "layer.1.attention") < found("bert", "block 1")
    assert all(name.endswith(".bias") for name in found("bert", "*.bias"))
    assert found("bert", "encoder.layer.[0-1].*") == found("bert", "blocks 0-1")
    with pytest.raises(BadValue, match="output.dense"):
        found("bert", "output.den")


def test_an_alternative_that_the_model_lacks_is_told() -> None:
    both = resolve(["classifier", "pooler"], names_of("roberta"), where="freeze.schedule.0")
    assert both.names and all(name.startswith("classifier") for name in both.names)
    assert both.notices == ("freeze.schedule.0: this model has no 'pooler', only classifier",)


@pytest.mark.parametrize(
    ("kind", "part", "words"),
    [
        ("roberta", "pooler", "classifier"),
        ("bert", "classifer", "classifier"),
        ("bert", "q_proj", "attention.self.query"),
        ("bert", "top 5 blocks", "at most 4 blocks"),
        ("bert", "blocks 2-9", "at most 4 blocks"),
        ("llama", "pooler", "model.norm"),
    ],
)
def test_what_names_nothing_is_refused_with_the_names_that_exist(kind: str, part: str, words: str) -> None:
    with pytest.raises(BadValue) as refused:
        resolve([part], names_of(kind), where="freeze.modules")
    problem = refused.value.problems[0]
    assert part in problem.what and words in f"{problem.right} {problem.type}" and problem.type


@pytest.mark.parametrize(
    ("part", "typed"),
    [
        ("encoder.layer[:8]", "bottom 8 blocks"),
        ("layers[2:4]", "blocks 2-3"),
        ("the last two layers", "top 2 blocks"),
        ("", "top 2 blocks"),
    ],
)
def test_other_ways_of_writing_are_answered_with_ours(part: str, typed: str) -> None:
    problem = form_problem(part, "freeze.modules")
    assert problem is not None and problem.type == f"freeze.modules: {typed}"


@pytest.mark.parametrize("part", ["head", "top 2 blocks", "blocks 0-7", "block 3", "*.bias", "layer.[0-3].*"])
def test_our_own_forms_pass(part: str) -> None:
    assert form_problem(part, "freeze.modules") is None
