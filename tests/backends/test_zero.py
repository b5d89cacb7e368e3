"""ZeRO's first half: the recipe's facts are auto, buckets fit a 24 GB card, what is given is kept."""

import pytest
from pydantic import ValidationError

from launcher.backends.options import BACKENDS
from launcher.backends.zero import Zero2Options, resolve
from launcher.facts import StepSettings

STEP = StepSettings(global_batch_size=64, micro_batch_size=4, accumulation_steps=8, num_ranks=2)
GIB = 2**30


def test_the_recipes_facts_are_auto_and_the_options_are_written() -> None:
    backend = BACKENDS.get("zero2")
    assert backend.ds_config is not None
    config = backend.ds_config(Zero2Options(reduce_bucket_size=7))
    owned = (
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "gradient_clipping",
    )
    assert {config[key] for key in owned} == {"auto"}
    assert config["bf16"] == config["fp16"] == {"enabled": "auto"}
    assert config["zero_optimization"]["reduce_bucket_size"] == 7
    assert config["zero_optimization"]["stage"] == 2


def test_default_buckets_take_less_than_a_gibibyte_with_overlap() -> None:
    """DeepSpeed's overlap keeps 4.5 buffers of the bucket's size (its config documentation), of 4 bytes."""
    options = Zero2Options()
    assert options.reduce_bucket_size * 4.5 * 4 < GIB


def test_zero2_divides_states_and_gradients() -> None:
    sharding = BACKENDS.get("zero2").sharding
    assert (sharding.optimizer_states, sharding.gradients, sharding.parameters) == (True, True, False)


def test_resolve_keeps_what_a_person_wrote_and_leaves_the_original_alone() -> None:
    config = {"train_batch_size": "auto", "gradient_clipping": 0.5, "bf16": {"enabled": "auto"}}
    resolved = resolve(config, step=STEP, precision="bf16", max_grad_norm=1.0)
    assert resolved["train_batch_size"] == 64
    assert resolved["gradient_clipping"] == 0.5
    assert resolved["bf16"] == {"enabled": True}
    assert config["bf16"] == {"enabled": "auto"}


def test_resolve_fills_in_what_the_file_leaves_out() -> None:
    resolved = resolve({"zero_optimization": {"stage": 2}}, step=STEP, precision="fp32", max_grad_norm=0.0)
    assert resolved["train_micro_batch_size_per_gpu"] == 4
    assert resolved["gradient_accumulation_steps"] == 8


@pytest.mark.parametrize("wrong", [{"reduce_bucket_size": 0}, {"stage": 3}, {"name": "zero3"}])
def test_options_refuse_what_they_do_not_own(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Zero2Options.model_validate(wrong)
