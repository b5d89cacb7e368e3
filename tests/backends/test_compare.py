"""B001 and its kin: a fact given by hand twice is silent when equal, one table when not."""

from dataclasses import dataclass
from typing import Any

import pytest

from launcher.backends.compare import (
    Given,
    ds_facts,
    flatten,
    normal,
    require_agreement,
    require_batch,
    settle,
    spoken,
    table,
)
from launcher.errors import Conflict
from launcher.facts import StepSettings
from launcher.recipe.load import load_recipe

BATCH = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8}


def step(num_ranks: int) -> StepSettings:
    """The plan for a global batch of 64 in micro batches of 4."""
    return StepSettings(
        global_batch_size=64, micro_batch_size=4, accumulation_steps=16 // num_ranks, num_ranks=num_ranks
    )


@dataclass(frozen=True)
class Said:
    """An origin of that kind."""

    kind: str


def test_b001_figures_that_do_not_multiply_on_the_ranks_are_one_table() -> None:
    with pytest.raises(Conflict) as caught:
        require_batch("ds.json", BATCH, step(num_ranks=1))
    said = str(caught.value)
    assert "train_batch_size 64 != 4 x 8 x 1" in said
    assert "gradient_accumulation_steps    | 16   | 8" in said
    assert "64 = 4 x 16 x 1 ranks" in said


def test_b001_figures_that_multiply_are_silent() -> None:
    require_batch("ds.json", BATCH, step(num_ranks=2))


def test_auto_and_absent_figures_are_silent() -> None:
    require_batch("ds.json", {"train_batch_size": "auto"}, step(num_ranks=1))


def test_figures_as_text_are_numbers() -> None:
    require_batch("ds.json", {key: str(value) for key, value in BATCH.items()}, step(num_ranks=2))


@pytest.mark.parametrize(
    ("left", "right"), [("8", 8), (8.0, 8), ("1e-5", 0.00001), ("BF16", "bf16"), (True, True)]
)
def test_spelling_is_no_difference(left: Any, right: Any) -> None:
    assert normal(left) == normal(right)


def test_facts_of_a_json_are_recipe_keys_and_auto_is_silent() -> None:
    config = {
        "train_batch_size": "auto",
        "gradient_clipping": 0.5,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.98], "eps": "auto"}},
    }
    assert ds_facts(config, num_ranks=1) == {
        "training.max_grad_norm": 0.5,
        "training.precision": "bf16",
        "training.learning_rate": 1e-4,
        "training.adam_beta1": 0.9,
        "training.adam_beta2": 0.98,
    }


def test_micro_batch_and_accumulation_together_state_the_global_batch() -> None:
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "8"}
    assert ds_facts(config, num_ranks=2)["training.global_batch_size"] == 64


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        ({"fp16": {"enabled": "true"}}, "fp16"),
        ({"fp16": {"enabled": False}, "bf16": {"enabled": False}}, "fp32"),
        ({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}, None),
        ({"fp16": {"enabled": False}}, None),
    ],
)
def test_precision_is_read_from_both_blocks(config: dict[str, Any], precision: str | None) -> None:
    assert ds_facts(config, num_ranks=1).get("training.precision") == precision


def test_a_default_is_nobodys_word() -> None:
    origins = {"a": Said("default"), "b": Said("recipe"), "c": Said("command line")}
    values = {"a": 1, "b": 2, "c": "auto", "d": 4}
    assert spoken(values, origins, "recipe", "command line") == {"b": 2}


def test_recipe_and_file_that_differ_are_one_table_with_every_key() -> None:
    with pytest.raises(Conflict) as caught:
        require_agreement(
            file="mine.json",
            file_facts={"training.global_batch_size": 64, "training.precision": "fp16", "training.seed": 1},
            recipe={"training.global_batch_size": 32, "training.seed": 1},
            command_line={"training.precision": "bf16"},
        )
    lines = str(caught.value).splitlines()
    assert "  key                        | recipe | file | command line" in lines
    assert "  training.global_batch_size | 32     | 64   | -" in lines
    assert "  training.precision         | -      | fp16 | bf16" in lines
    assert not any("seed" in line for line in lines)
    assert '"auto" in mine.json' in lines[-1]


def test_the_command_line_may_overrule_the_recipe() -> None:
    require_agreement(
        file="f",
        file_facts={"training.seed": 2},
        recipe={"training.seed": 1},
        command_line={"training.seed": "2"},
    )


def test_settle_takes_over_what_only_the_file_says_and_refuses_what_the_recipe_says_otherwise() -> None:
    loaded = load_recipe("quickstart", ["training.global_batch_size=32"])
    given = {"recipe": loaded.recipe, "origins": loaded.origins, "num_ranks": 2}
    taken = settle("f", {"train_batch_size": 32, "gradient_clipping": 0.25}, **given)
    assert taken == {"training.max_grad_norm": 0.25}
    with pytest.raises(Conflict, match=r"global_batch_size \| -      \| 64   \| 32"):
        settle("f", {"train_batch_size": 64}, **given)


def test_nested_sections_become_dotted_keys() -> None:
    assert flatten({"a": {"b": {"c": 1}}, "d": 2}) == {"a.b.c": 1, "d": 2}


def test_columns_line_up() -> None:
    lines = table([Given(key="k", recipe=1, file=22), Given(key="longer", command_line="x")]).splitlines()
    assert len({line.index("|") for line in lines}) == 1
