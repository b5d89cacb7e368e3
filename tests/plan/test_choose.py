"""The plan as a pure function of recipe, machine and ranks."""

from dataclasses import replace

import pytest

from launcher.errors import BadValue, HardwareError
from launcher.facts import Machine, Plan
from launcher.plan.choose import fingerprint, make_plan, plan_lines
from launcher.recipe.schema import Recipe
from launcher.units import GIB
from tests.plan.cards import recipe as causal_recipe
from tests.plan.cards import shape

CPU = Machine(device="cpu", num_gpus=0, num_cores=2, torch_version="2.13.0", cpu_has_bf16=True)
V100 = Machine(
    device="cuda", num_gpus=1, gpu_name="Tesla V100", compute_capability=(7, 0), torch_version="2.13.0"
)
ADA = replace(V100, gpu_name="NVIDIA GeForce RTX 4090", compute_capability=(8, 9))


def recipe(adapter: str = "full", dtype: str = "auto", **training: object) -> Recipe:
    values = {"global_batch_size": 32, "learning_rate": 2e-5} | training
    model = {"model_name_or_path": "m", "dtype": dtype}
    sections = {"model": model, "data": {"train_file": "t.csv"}, "adapter": adapter, "training": values}
    return Recipe.model_validate({"task": "classification", **sections})


def plan(of: Recipe, machine: Machine = CPU, ranks: int = 1):  # type: ignore[no-untyped-def]
    return make_plan(of, name="job", machine=machine, backend="single_gpu", num_ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_b001_the_global_batch_is_kept_on_any_number_of_ranks(ranks: int) -> None:
    step = plan(recipe(per_device_train_batch_size=4), ranks=ranks).step
    assert step.micro_batch_size * step.accumulation_steps * step.num_ranks == 32
    assert step.micro_batch_size <= 4


@pytest.mark.parametrize("ranks", [3, 5, 7])
def test_b001_ranks_that_cannot_make_the_batch_are_refused_with_those_that_can(ranks: int) -> None:
    with pytest.raises(BadValue) as caught:
        plan(recipe(), ranks=ranks)
    below, above = 32 // ranks * ranks, (32 // ranks + 1) * ranks
    assert str(below) in str(caught.value) and str(above) in str(caught.value)


def test_b004_old_cards_get_fp16_and_the_reason() -> None:
    made = plan(recipe(), V100)
    assert made.precision == "fp16" and made.weights_dtype == "float32"
    assert any("no bf16 units" in line and "bf16-emulated" in line for line in plan_lines(made))
    assert plan(recipe(), ADA).precision == "bf16"
    with pytest.raises(HardwareError, match="bf16"):
        plan(recipe(precision="bf16"), V100)


@pytest.mark.parametrize(
    ("precision", "held"), [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")]
)
def test_b006_trained_weights_are_fp32_and_frozen_ones_in_the_compute_type(precision: str, held: str) -> None:
    assert plan(recipe(precision=precision)).weights_dtype == "float32"
    assert plan(recipe("lora", precision=precision)).weights_dtype == held


def test_b006_pure_half_precision_is_asked_for_and_warned_about() -> None:
    made = plan(recipe(dtype="bfloat16"))
    assert made.weights_dtype == "bfloat16"
    assert any("rounded away" in line for line in plan_lines(made))


def test_the_rate_follows_the_batch_and_says_so() -> None:
    made = plan(recipe(lr_reference_batch_size=8, lr_scaling="linear"))
    assert made.learning_rate == pytest.approx(8e-5)
    assert any("linear scaling to 32" in line for line in plan_lines(made))


def test_the_fingerprint_changes_with_everything_that_ranks_must_agree_on() -> None:
    base = fingerprint(recipe(), "zero2", 2, "2.13.0")
    assert base == fingerprint(recipe(), "zero2", 2, "2.13.0")
    others = [
        fingerprint(recipe(seed=1), "zero2", 2, "2.13.0"),
        fingerprint(recipe(), "multi_gpu", 2, "2.13.0"),
        fingerprint(recipe(), "zero2", 4, "2.13.0"),
        fingerprint(recipe(), "zero2", 2, "2.12.0"),
    ]
    assert len({base, *others}) == 5


CARD = Machine(
    device="cuda",
    num_gpus=1,
    gpu_name="NVIDIA GeForce RTX 3090",
    gpu_memory_bytes=int(23.69 * GIB),
    compute_capability=(8, 6),
)


def causal(adapter: str = "lora", **training: object) -> Recipe:
    return causal_recipe(adapter=adapter, **training)


def on_card(of: Recipe, machine: Machine = CARD, ranks: int = 1, known: bool = True) -> Plan:
    model = shape(of.model.model_name_or_path) if known else None
    return make_plan(of, name="job", machine=machine, backend="single_gpu", num_ranks=ranks, shape=model)


def test_an_automatic_batch_is_the_largest_that_the_cards_memory_covers() -> None:
    wanted = causal(activation_checkpointing=True, global_batch_size=64)
    plans = [on_card(wanted, replace(CARD, gpu_memory_bytes=int(gib * GIB))) for gib in (17, 23.69, 80)]
    rows = [made.step.micro_batch_size for made in plans]
    assert rows == sorted(rows) and rows[0] < rows[-1]
    assert all(made.step.micro_batch_size * made.step.accumulation_steps == 64 for made in plans)
    assert "the most that fit" in next(line for line in plan_lines(plans[1]) if line.startswith("batch"))


def test_an_unknown_model_and_a_cpu_keep_the_plain_bound() -> None:
    wanted = causal(global_batch_size=64)
    assert on_card(wanted, known=False).step.micro_batch_size == 32
    assert "no estimate for this model" in "\n".join(plan_lines(on_card(wanted, known=False)))
    assert on_card(wanted, CPU).step.micro_batch_size == 32


def test_a_bound_by_hand_is_left_alone_even_where_it_does_not_fit() -> None:
    assert on_card(causal(per_device_train_batch_size=16)).step.micro_batch_size == 16


def test_one_row_that_is_too_much_is_tried_and_said() -> None:
    made = on_card(causal("full"))
    assert made.step.micro_batch_size == 1
    assert "even one row is estimated to need more" in "\n".join(plan_lines(made))
