"""Seconds of a step: directions that physics fixes, and a published figure as a landmark."""

from dataclasses import replace

import pytest

from launcher.facts import ShardingFacts
from launcher.hardware.catalog import get
from launcher.memory.setting import Adapter, Setting
from launcher.plan.links import link
from launcher.plan.time_model import step_time
from launcher.plan.work import passes
from tests.plan.cards import LLAMA, shape

NOTHING = ShardingFacts(optimizer_states=False, gradients=False, parameters=False)
EVERYTHING = ShardingFacts(optimizer_states=True, gradients=True, parameters=True)
LORA = Adapter(method="lora", num_params=4_000_000, rank=8, targets=("self_attn.q_proj", "self_attn.v_proj"))
A100 = get("a100_sxm_80")


def setting(adapter: Adapter | None = LORA, **changes: object) -> Setting:
    base = Setting(
        shape=shape(LLAMA),
        method="full" if adapter is None else "lora",
        adapter=adapter,
        micro_batch=4,
        seq_len=2048,
        weights_dtype="bfloat16",
        checkpointing="none",
        sharding=NOTHING,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def seconds(one: Setting, gpu: str = "a100_sxm_80") -> float:
    return step_time(one, get(gpu)).seconds


def test_recomputing_costs_a_third_of_full_training_and_half_of_lora() -> None:
    def ratio(adapter: Adapter | None) -> float:
        counts = [passes(setting(adapter, checkpointing=kind)).total for kind in ("full", "none")]
        return counts[0] / counts[1]

    assert ratio(None) == pytest.approx(4 / 3)
    assert ratio(LORA) == pytest.approx(3 / 2)
    for adapter in (None, LORA):
        took = [seconds(setting(adapter, checkpointing=kind)) for kind in ("full", "none")]
        assert 1.15 < took[0] / took[1] < 1.5


def test_accumulation_takes_as_long_as_it_has_micro_batches() -> None:
    one, four = (step_time(setting(accumulation_steps=n), A100) for n in (1, 4))
    assert four.rows == 4 * one.rows
    assert 3.8 < four.seconds / one.seconds <= 4


def test_a_faster_card_is_faster_and_old_cards_pay_for_emulated_bf16() -> None:
    assert seconds(setting(), "h100_sxm") < seconds(setting(), "a100_sxm_80") < seconds(setting(), "rtx3090")
    half = setting(weights_dtype="float16", precision="fp16")
    assert seconds(setting(), "v100_32_sxm2") > 3 * seconds(half, "v100_32_sxm2")


def test_rows_at_once_never_make_a_step_slower() -> None:
    took = [seconds(setting(micro_batch=n, accumulation_steps=16 // n)) for n in (16, 8, 4, 2, 1)]
    assert took == sorted(took)


def test_b059_cards_without_peers_pay_at_the_link() -> None:
    assert link(get("rtx4090")).kind == "host"
    assert link(get("a100_sxm_80")).kind == "nvlink"
    assert link(get("l20")).kind == "pcie"
    assert link(get("rtx3090"), 2).kind == "nvlink" and link(get("rtx3090"), 4).kind != "nvlink"
    divided = setting(None, num_ranks=2, sharding=EVERYTHING, sharding_kind="fsdp2")
    share = [
        next(t.seconds for t in step_time(divided, get(gpu)).terms if t.name == "communication")
        for gpu in ("a100_sxm_80", "rtx4090")
    ]
    assert share[0] < 0.2 * share[1]


def test_host_memory_makes_a_step_slower_than_the_card_alone() -> None:
    away = replace(EVERYTHING, offload_optimizer=True, offload_parameters=True)
    took = [seconds(setting(None, sharding=facts, sharding_kind="zero3")) for facts in (EVERYTHING, away)]
    assert took[1] > 1.2 * took[0]


def test_terms_add_up_and_say_what_they_are() -> None:
    found = step_time(setting(quantisation="nf4"), A100)
    assert found.seconds == pytest.approx(sum(term.seconds for term in found.terms))
    assert {"products", "unpacking", "adapter", "optimizer"} <= {term.name for term in found.terms}
    assert all(term.formula and term.seconds > 0 for term in found.terms)


def test_a_published_full_training_run_is_met_within_a_tenth() -> None:
    """fms-acceleration: Mistral-7B, full, fused kernels, 8 x 4,096 tokens on one A100-80GB: 3,546.5/s."""
    run = setting(
        None,
        shape=shape("mistralai/Mistral-7B-v0.1"),
        micro_batch=8,
        seq_len=4096,
        trainable_dtype="bfloat16",
        pure=True,
        optimizer="adamw_foreach",
        checkpointing="full",
        attention="flash",
        loss="fused",
        fused_norm=True,
    )
    assert step_time(run, A100).tokens_per_s == pytest.approx(3546.5, rel=0.1)
