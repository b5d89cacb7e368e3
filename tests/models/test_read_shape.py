"""What is read off a configuration equals the instantiated model, for every architecture in the catalogue."""

import re
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig
from transformers.pytorch_utils import Conv1D

from launcher.errors import CannotTell
from launcher.models.architectures.defaults import defaults
from launcher.models.architectures.table import READERS, REFUSED
from launcher.models.blocks_torch import block_class_names
from launcher.models.catalogue import Entry, config, entries
from launcher.models.load_torch import length_limit
from launcher.models.read_shape import known_types, require_dense, shape_of
from launcher.models.shape import LinearShape, ModelShape
from tests.models import meta

LAYERS = 2


def sizes_of(entry: Entry) -> str:
    """What two entries that differ in rotary positions alone have in common."""
    return str({key: value for key, value in entry.config.items() if key != "max_position_embeddings"})


BUILT = list(
    {sizes_of(entry): entry for entry in entries() if entry.config["model_type"] not in meta.REMOTE}.values()
)
TYPES = sorted({entry.config["model_type"] for entry in BUILT})
OF_TYPE = {model_type: [e for e in BUILT if e.config["model_type"] == model_type] for model_type in TYPES}
HEADS = re.compile(r"^(lm_head|cls|classifier|score|pooler|bert\.pooler|pre_classifier|head|generator_\w+)\.")
FINAL_NORMS = re.compile(r"(^|\.)(norm|ln_f|final_norm|final_layer_?norm)\.")
PAIRS = [
    *((entry, meta.own_task(entry.config["model_type"])) for entry in BUILT),
    *(
        (found[0], other)
        for kind, found in OF_TYPE.items()
        for other in meta.AUTO
        if other != meta.own_task(kind) and meta.has_class(found[0].config, other)
    ),
]


def shallow(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in meta.DEPTH_NAMES} | dict.fromkeys(
        [name for name in meta.DEPTH_NAMES if name in values], LAYERS
    )


def linears_of(block: nn.Module) -> list[tuple[str, int, int, bool]]:
    found = []
    for name, module in block.named_modules():
        if isinstance(module, nn.Linear):
            found.append((name, module.in_features, module.out_features, module.bias is not None))
        elif isinstance(module, Conv1D):
            found.append((name, module.nx, module.nf, True))
    return found


def split(model: nn.Module, blocks_path: str) -> dict[str, int]:
    """Elements outside the blocks, by what they are for."""
    word = model.get_input_embeddings().weight
    sums = {"word": word.numel(), "other": 0, "norm": 0, "head": 0}
    for name, parameter in model.named_parameters():
        if name.startswith(f"{blocks_path}.") or parameter is word:
            continue
        is_norm = FINAL_NORMS.search(name) and "embeddings" not in name
        sums["head" if HEADS.match(name) else "norm" if is_norm else "other"] += parameter.numel()
    return sums


@pytest.mark.parametrize(("entry", "task"), PAIRS, ids=[f"{meta.label(e)}-{task}" for e, task in PAIRS])
def test_every_part_equals_the_instantiated_model(entry: Entry, task: str) -> None:
    model = meta.build(entry.config, task, num_layers=LAYERS, num_labels=3)
    shape = shape_of(shallow(entry.config), task=task, num_labels=3)
    assert shape.num_params == meta.count(model)
    block = model.get_submodule(shape.blocks_path)[-1]
    assert type(block).__name__ == shape.block_class
    assert [(x.name, x.in_features, x.out_features, x.bias) for x in shape.linears] == linears_of(block)
    assert shape.block_params == meta.count(block)
    found = split(model, shape.blocks_path)
    if shape.model_type == "modernbert":  # The embedding's norm is the one that the first block lacks.
        found["other"] = 0
    assert found == {
        "word": shape.word_embedding_params,
        "other": shape.other_embedding_params,
        "norm": shape.final_norm_params,
        "head": shape.head_params,
    }


@pytest.mark.parametrize("model_type", TYPES)
def test_facts_beside_the_counts_equal_the_instantiated_model(model_type: str) -> None:
    values = OF_TYPE[model_type][0].config
    model = meta.build(values, meta.own_task(model_type), num_layers=LAYERS)
    shape = shape_of(shallow(values), task=meta.own_task(model_type))
    assert shape.block_class in block_class_names(model)
    has_embeddings = any(name.endswith("Embeddings") for name in block_class_names(model))
    assert shape.has_embeddings_apart == has_embeddings
    flags = {"sdpa": model._supports_sdpa, "flash_attention_2": model._supports_flash_attn}
    assert shape.attention_kernels == ("eager", *(name for name, has in flags.items() if has))
    assert shape.tied == (bool(model.config.tie_word_embeddings))
    assert shape.max_tokens == length_limit(model.config)
    rates = {module.p for module in model.modules() if isinstance(module, nn.Dropout)}
    stated = {shape.hidden_dropout, shape.attention_dropout, shape.embedding_dropout}
    assert rates - stated <= {0.0, getattr(model.config, "seq_classif_dropout", 0.0)}
    ends = ("score", "classifier")
    heads = [part for name, part in model.named_children() if name.endswith(ends)]
    assert shape.classifier_params == sum(map(meta.count, heads))


@pytest.mark.parametrize("model_type", TYPES)
def test_the_whole_depth_of_the_smallest_model_of_a_type(model_type: str) -> None:
    task = meta.own_task(model_type)
    shapes = [(shape_of(entry.config, task=task), entry) for entry in OF_TYPE[model_type]]
    shape, entry = min(shapes, key=lambda pair: pair[0].num_params)
    model = meta.build(entry.config, task)
    assert len(model.get_submodule(shape.blocks_path)) == shape.num_layers
    assert meta.count(model) == shape.num_params


COUNTED = [entry for entry in entries() if entry.num_params]


@pytest.mark.parametrize("entry", COUNTED, ids=meta.label)
def test_published_counts_are_met(entry: Entry) -> None:
    task = meta.own_task(entry.config["model_type"])
    assert shape_of(entry.config, task=task, num_labels=2).num_params == entry.num_params


@pytest.mark.parametrize("model_type", [name for name in known_types() if name not in meta.REMOTE])
def test_defaults_are_those_of_the_installed_configuration_classes(model_type: str) -> None:
    real = AutoConfig.for_model(model_type)
    assert defaults(model_type) == {name: getattr(real, name) for name in defaults(model_type)}


@pytest.mark.parametrize("model_type", [name for name in known_types() if name not in meta.REMOTE])
def test_a_configuration_that_says_nothing_but_its_type_is_counted_by_the_defaults(model_type: str) -> None:
    task = meta.own_task(model_type)
    model = meta.build({"model_type": model_type}, task, num_layers=LAYERS)
    names = [name for name in meta.DEPTH_NAMES if name in defaults(model_type)]
    shape = shape_of({"model_type": model_type} | dict.fromkeys(names, LAYERS), task=task)
    assert shape.num_params == meta.count(model)


VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    ("llama", "causal_lm", {"attention_bias": True, "mlp_bias": True}),
    ("llama", "causal_lm", {"head_dim": 24, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    ("qwen3", "causal_lm", {"attention_bias": True}),
    ("gemma", "classification", {"attention_bias": True}),
    ("granite", "causal_lm", {"attention_bias": True, "mlp_bias": True}),
    ("olmo2", "causal_lm", {"num_key_value_heads": 2}),
    ("mixtral", "classification", {"num_local_experts": 3}),
    *((kind, "causal_lm", {"tie_word_embeddings": False}) for kind in ("bert", "roberta", "electra")),
    ("gpt_neox", "causal_lm", {"attention_bias": False, "tie_word_embeddings": True}),
    ("opt", "causal_lm", {"enable_bias": False, "ffn_dim": 96}),
    ("opt", "classification", {"word_embed_proj_dim": 16}),
    ("deberta-v2", "classification", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    ("deberta-v2", "classification", {"relative_attention": True, "pos_att_type": "c2p"}),
    ("deberta-v2", "classification", {"embedding_size": 16, "type_vocab_size": 2}),
    ("deberta-v2", "classification", {"conv_kernel_size": 3, "conv_act": "gelu", "conv_groups": 2}),
    ("modernbert", "classification", {"pad_token_id": 0, "attention_bias": True, "mlp_bias": True}),
    ("modernbert", "classification", {"pad_token_id": 0, "classifier_bias": True, "norm_bias": True}),
]


@pytest.mark.parametrize(
    "name", ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_key_value_heads"]
)
def test_a_configuration_that_differs_in_one_size_counts_differently(name: str) -> None:
    values = OF_TYPE["llama"][0].config | {"head_dim": 64, "num_key_value_heads": 4}
    model = meta.build(values, "causal_lm", num_layers=LAYERS)
    other = shallow(values) | {name: 2 * shallow(values)[name]}
    assert shape_of(shallow(values)).num_params == meta.count(model) != shape_of(other).num_params


IGNORED: list[tuple[str, str, dict[str, Any]]] = [
    ("phi3", "causal_lm", {"attention_bias": True, "mlp_bias": True, "pad_token_id": 0}),
    ("mistral", "causal_lm", {"attention_bias": True, "resid_pdrop": 0.3}),
    ("qwen2", "causal_lm", {"attention_bias": False, "mlp_bias": True}),
    ("bert", "classification", {"embedding_size": 16}),
    ("gpt2", "causal_lm", {"multi_query": True}),
    ("gemma3_text", "causal_lm", {"head_dim": 16, "mlp_bias": True}),
]
SMALL = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 64}


@pytest.mark.parametrize(("model_type", "task", "changes"), VARIANTS + IGNORED)
def test_switches_are_counted_where_the_class_has_them_and_ignored_where_not(
    model_type: str, task: str, changes: dict[str, Any]
) -> None:
    values = {"model_type": model_type} | SMALL | changes
    model, shape = meta.build(values, task), shape_of(values, task=task)
    assert shape.num_params == meta.count(model)
    block = model.get_submodule(shape.blocks_path)[-1]
    assert [(x.name, x.in_features, x.out_features, x.bias) for x in shape.linears] == linears_of(block)


@pytest.mark.parametrize(
    "values", [{"n_layer": 3, "n_head": 2}, {"num_hidden_layers": 3, "num_attention_heads": 2}]
)
def test_both_names_of_a_fact_are_read(values: dict[str, int]) -> None:
    shape = shape_of({"model_type": "gpt2"} | values)
    assert (shape.num_layers, shape.num_heads) == (3, 2)


def test_experts_of_mixtral_are_counted_apart() -> None:
    found = config("mistralai/Mixtral-8x7B-v0.1")
    assert found is not None
    shape = shape_of(found)
    assert (shape.num_experts, shape.num_active_experts) == (8, 2)
    assert shape.expert_params == 8 * 3 * 4096 * 14336
    assert {linear.kind for linear in shape.linears} == {"attention"}
    with pytest.raises(CannotTell, match="routes tokens to 8 experts"):
        require_dense(shape)
    dense = shape_of({"model_type": "mistral"})
    assert require_dense(dense) is dense


@pytest.mark.parametrize("model_type", [*REFUSED, "an_unheard_of_kind", None])
def test_what_is_not_known_is_said_with_the_known_ones_and_the_way_out(model_type: str | None) -> None:
    with pytest.raises(CannotTell) as caught:
        shape_of({} if model_type is None else {"model_type": model_type})
    problem = caught.value.problems[0]
    assert caught.value.exit_code == 3
    assert (REFUSED.get(model_type or "") or str(model_type or "no model_type")) in problem.what
    assert "llama" in problem.right and "trace" in problem.right


ODD: tuple[Any, ...] = (
    None,
    0,
    5,
    -1,
    -(10**9),
    1.5,
    True,
    "x",
    "",
    [],
    {},
    [1],
    {"a": 1},
    10**30,
    float("nan"),
)


@pytest.mark.parametrize("model_type", known_types())
def test_any_value_of_any_key_gives_a_shape_or_a_reason(model_type: str) -> None:
    values = dict(next(e.config for e in entries() if e.config["model_type"] == model_type))
    values |= {"share_att_key": False} if "share_att_key" in values else {}
    for key in {*values, *defaults(model_type)}:
        for odd in ODD:
            try:
                shape = shape_of(values | {key: odd}, task=meta.own_task(model_type))
            except CannotTell as refused:
                assert refused.problems[0].type
            else:
                assert shape.num_params > 0


def test_an_unknown_mixture_of_experts_is_said_to_be_one() -> None:
    with pytest.raises(CannotTell, match="routes tokens to 64 experts"):
        shape_of({"model_type": "some_new_moe", "n_routed_experts": 64})


def test_a_size_that_is_missing_or_no_number_is_named() -> None:
    with pytest.raises(CannotTell, match="ffn_hidden_size"):
        shape_of({"model_type": "chatglm", "hidden_size": 64, "num_attention_heads": 2})
    with pytest.raises(CannotTell, match="'32'"):
        shape_of({"model_type": "llama", "num_hidden_layers": "32"})


@pytest.mark.parametrize("model_type", ["distilbert", "deberta-v2", "modernbert"])
def test_an_encoder_without_a_language_model_is_refused_for_that_task(model_type: str) -> None:
    with pytest.raises(CannotTell, match="task=classification"):
        shape_of({"model_type": model_type})


@pytest.mark.parametrize("model_type", sorted(meta.REMOTE))
def test_remote_code_is_marked_and_has_no_classifier(model_type: str) -> None:
    values = next(entry.config for entry in entries() if entry.config["model_type"] == model_type)
    assert not shape_of(values).is_verified
    with pytest.raises(CannotTell, match="task=causal_lm"):
        shape_of(values, task="classification")


def test_b036_a_roberta_takes_two_tokens_less_than_its_table() -> None:
    shape = shape_of({"model_type": "roberta", "max_position_embeddings": 514}, task="classification")
    assert (shape.max_positions, shape.max_tokens) == (514, 512)
    assert shape_of({"model_type": "bloom"}).max_tokens is None


def test_b014_bloom_computes_attention_in_one_way_only() -> None:
    assert shape_of({"model_type": "bloom"}).attention_kernels == ("eager",)


LOSS_TYPES = [kind for kind in TYPES if meta.has_class({"model_type": kind}, "causal_lm")]


@pytest.mark.parametrize("model_type", LOSS_TYPES)
def test_the_loss_makes_fp32_logits_where_the_shape_says_so(model_type: str) -> None:
    sizes = SMALL | {
        "intermediate_size": 64,
        "n_embd": 32,
        "n_head": 4,
        "n_layer": 2,
        "dim": 32,
        "n_heads": 4,
    }
    sizes |= {"embedding_size": 32, "head_dim": 8, "ffn_dim": 64, "word_embed_proj_dim": 32, "n_layers": 2}
    sizes |= {"num_key_value_heads": 4, "max_position_embeddings": 32, "n_positions": 32, "bos_token_id": 1}
    sizes |= {"eos_token_id": 2, "pad_token_id": 0, "num_local_experts": 2}
    config_class = type(AutoConfig.for_model(model_type))
    real = config_class(**{key: value for key, value in sizes.items() if hasattr(config_class(), key)})
    real.is_decoder = True
    model = meta.AUTO["causal_lm"].from_config(real, dtype=torch.bfloat16)
    ids = torch.ones(1, 8, dtype=torch.long)
    answer = model(input_ids=ids, labels=ids)
    assert answer.logits.dtype == torch.bfloat16
    assert (answer.loss.dtype == torch.float32) == shape_of({"model_type": model_type}).upcasts_logits


def test_shapes_are_plain_facts() -> None:
    linear = LinearShape(name="a", in_features=3, out_features=5, bias=True, kind="mlp")
    assert linear.num_params == 20
    shape = shape_of({"model_type": "llama"})
    assert isinstance(shape, ModelShape) and hash(shape) == hash(shape_of({"model_type": "llama"}))
    assert set(READERS) == set(known_types())
