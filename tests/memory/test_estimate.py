"""The closed form: every term switched on alone, the peak over phases, and published figures."""

from dataclasses import replace
from typing import Any

import pytest

from launcher.facts import ShardingFacts
from launcher.memory.breakdown import PHASES
from launcher.memory.estimate import estimate
from launcher.memory.setting import Setting
from tests.memory.shapes import ALL_DIVIDED, full, lora, mistral, phase, shape, sharded, term, with_lora

MISTRAL = mistral()
P = MISTRAL.num_params
T = 512
LINEAR = sum(each.in_features * each.out_features for each in MISTRAL.linears)
OFFLOADED = replace(ALL_DIVIDED, offload_optimizer=True, offload_parameters=True)


def published(**changes: Any) -> Setting:
    """As transformers' Trainer ran it in the published runs: re-entrant, outputs held, no evaluation."""
    harness = {"output_held": True, "reentrant": True, "evaluates": False, "attention": "flash"}
    return with_lora(MISTRAL, micro_batch=4, seq_len=4096, repeats_kv=True, **(harness | changes))


@pytest.mark.parametrize(
    ("changes", "where", "name", "num_bytes"),
    [
        ({}, "load", "weights", 4 * P),
        ({"weights_dtype": "bfloat16"}, "forward", "fp32 masters", 4 * P),
        ({}, "optimizer", "gradients", 4 * P),
        ({"accumulation_steps": 2}, "forward", "gradients", 4 * P),
        ({}, "optimizer", "optimizer states", 8 * P),
        ({"optimizer": "adamw_foreach"}, "optimizer", "foreach temporary", 4 * P),
        ({"optimizer": "sgd_momentum"}, "optimizer", "optimizer states", 4 * P),
        ({"optimizer": "paged_adamw"}, "optimizer", "optimizer states", 0),
        ({"autocast_cache": True}, "forward", "autocast weight copies", 2 * 32 * LINEAR),
        ({"checkpointing": "none"}, "forward", "autocast weight copies", 2 * 32 * LINEAR),
        ({}, "forward", "head weight copy", 2 * 32000 * 4096),
        ({}, "forward", "checkpoints", 32 * 4 * 4096 * T),
        ({}, "forward", "logits and loss", 10 * 32000 * T),
        ({"loss": "chunked", "loss_chunk_tokens": 64}, "forward", "logits and loss", 6 * 32000 * 64),
        ({"loss": "chunked", "loss_chunk_tokens": 64}, "forward", "head gradient", 10 * 32000 * 4096),
        ({"checkpointing": "none"}, "forward", "MLP inner values", 32 * 6 * 14336 * T),
        ({"checkpointing": "none"}, "forward", "softmax sums", 32 * 4 * 32 * T),
        ({"attention": "eager", "checkpointing": "none"}, "forward", "attention probabilities",
         32 * 6 * 32 * T * T),
        ({"num_ranks": 2, "ddp_bucket_view": False}, "backward", "DDP buckets", 4 * P),
        ({}, "optimizer", "cuBLAS workspaces", 17_039_360),
    ],
)  # fmt: skip
def test_each_term_of_full_training_is_there_alone(
    changes: dict[str, Any], where: str, name: str, num_bytes: int
) -> None:
    assert term(estimate(full(MISTRAL, **changes)), where, name) == num_bytes


@pytest.mark.parametrize(
    ("changes", "where", "name", "num_bytes"),
    [
        ({}, "load", "weights", 2 * P),
        ({}, "load", "adapter weights", 4 * 13_631_488),
        ({}, "optimizer", "optimizer states", 8 * 13_631_488),
        ({"quantisation": "nf4", "double_quant": True}, "load", "quantised weights", int(
            32 * LINEAR * (0.5 + 1 / 64 + 4 / 16384))),
        ({"quantisation": "nf4", "kbit_upcast": True}, "load", "weights", 4 * (P - 32 * LINEAR)),
        ({"kbit_upcast": True, "quantisation": "nf4"}, "forward", "checkpoints", 32 * 4 * 4096 * T),
        ({"micro_batch": 64}, "backward", "logits and loss", 12 * 32000 * 64 * T),
        ({"micro_batch": 64, "output_held": True}, "backward", "logits and loss", 14 * 32000 * 64 * T),
    ],
)  # fmt: skip
def test_each_term_of_lora_is_there_alone(
    changes: dict[str, Any], where: str, name: str, num_bytes: int
) -> None:
    assert term(estimate(with_lora(MISTRAL, **changes)), where, name) == num_bytes


def test_fsdp2_divides_gathers_and_loads_whole() -> None:
    found = estimate(sharded(full(MISTRAL)))
    assert term(found, "forward", "weights") == 4 * P // 4
    assert term(found, "forward", "gathered root") == 4 * MISTRAL.root_params
    # a block's weights and flat buffer beside the flat buffer of the block before it
    assert term(found, "forward", "gathered blocks") == 3 * 4 * MISTRAL.block_params
    assert term(found, "load", "weights before sharding") == 4 * P
    deep = estimate(sharded(full(MISTRAL, micro_batch=64, loss="linear_fused"), num_ranks=16))
    block = 4 * MISTRAL.block_params
    assert term(deep, "backward", "gathered blocks") == block
    assert term(deep, "backward", "prefetched unit") in (0, block)


def test_zero_keeps_masters_and_buckets() -> None:
    facts = ShardingFacts(optimizer_states=True, gradients=True, parameters=False)
    setting = full(MISTRAL, sharding_kind="zero2", sharding=facts, num_ranks=4)
    found = estimate(setting)
    assert term(found, "optimizer", "fp32 masters") == P
    assert term(found, "optimizer", "optimizer states") == 2 * P
    assert term(found, "backward", "reduce buckets") == 2 * 4 * 50_000_000
    assert term(found, "optimizer", "flattened gradients") == 2 * P


def test_offloading_leaves_neither_states_nor_gradients_on_the_card() -> None:
    found = estimate(sharded(full(MISTRAL), "zero3", sharding=OFFLOADED))
    assert {"weights", "optimizer states", "fp32 masters"}.isdisjoint(
        each.name for each in phase(found, "optimizer").terms
    )


def test_zero3_keeps_gathered_what_comes_again_soon() -> None:
    small = shape("bert-base-uncased", task="classification")
    found = estimate(sharded(full(small), "zero3"))
    blocks = small.num_layers * small.block_params
    assert term(found, "forward", "gathered weights") >= 4 * blocks
    at_once = sharded(full(small), "zero3", reuse_distance_elements=0, prefetch_bucket_elements=0)
    assert term(estimate(at_once), "forward", "gathered weights") == 4 * small.word_embedding_params
    large = estimate(sharded(full(MISTRAL), "zero3"))
    assert 4 * 0.8e9 < term(large, "forward", "gathered weights") < 4 * 1.2e9


def test_what_an_evaluation_leaves_gathered_stands_beside_a_save() -> None:
    evaluated = sharded(full(shape("bert-base-uncased", task="classification")), "zero3")
    left = term(estimate(evaluated), "save", "gathered weights")
    assert left >= 4 * 12 * evaluated.shape.block_params
    assert term(estimate(replace(evaluated, evaluates=False)), "save", "gathered weights") == 0


def test_zero3_saves_inputs_as_they_come_and_no_cast_weights() -> None:
    """Its own linear layer: BERT's fp32 stream once, where autocast would copy it for each product."""
    wide = {"micro_batch": 64, "checkpointing": "none"}
    bert = full(shape("bert-base-uncased", task="classification"), **wide)
    plain, divided = estimate(bert), estimate(sharded(bert, "zero3"))
    assert term(plain, "forward", "autocast weight copies") > 0
    assert term(divided, "forward", "autocast weight copies") == 0
    copies, once = (term(found, "forward", "attention inputs") for found in (plain, divided))
    assert copies == once * 3 * 2 / 4


def test_what_is_on_its_way_to_host_memory_stands_on_the_card() -> None:
    states = ShardingFacts(optimizer_states=True, gradients=True, parameters=False, offload_optimizer=True)
    found = estimate(sharded(full(MISTRAL), "zero2", sharding=states))
    assert term(found, "optimizer", "offload staging") == 4 * MISTRAL.word_embedding_params
    found = estimate(sharded(full(MISTRAL), "fsdp2", sharding=OFFLOADED))
    assert term(found, "forward", "offload staging") == 0
    assert term(found, "load", "weights") == 4 * MISTRAL.word_embedding_params // 4
    assert term(estimate(full(MISTRAL)), "forward", "offload staging") == 0


def test_selective_checkpointing_saves_all_but_the_probabilities() -> None:
    kept = full(MISTRAL, attention="eager", checkpointing="none", micro_batch=2)
    selective = estimate(replace(kept, checkpointing="selective"))
    saved = phase(estimate(kept), "forward").num_bytes - phase(selective, "forward").num_bytes
    assert saved == 32 * 6 * 32 * T * T * 2
    whole = estimate(replace(kept, checkpointing="full"))
    assert phase(whole, "forward").num_bytes < phase(selective, "forward").num_bytes


def test_no_term_is_called_other_and_every_phase_is_there() -> None:
    found = estimate(full(MISTRAL))
    assert tuple(each.name for each in found.phases) == PHASES
    names = {each.name for one in found.phases for each in one.terms}
    assert not any("other" in name.split() for name in names)
    assert all(each.formula for one in found.phases for each in one.terms)


def test_the_peak_is_the_highest_phase_not_their_sum() -> None:
    found = estimate(full(MISTRAL))
    assert found.peak_bytes == max(each.num_bytes for each in found.phases)


@pytest.mark.parametrize("setting", [full(MISTRAL), with_lora(MISTRAL), full(MISTRAL, checkpointing="none")])
@pytest.mark.parametrize("key", ["micro_batch", "seq_len"])
def test_more_rows_or_tokens_never_need_less(setting: Setting, key: str) -> None:
    sizes = [estimate(replace(setting, **{key: value})).peak_bytes for value in (1, 2, 8, 64, 512, 4096)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


@pytest.mark.parametrize("kind", ["fsdp2", "zero3"])
def test_more_ranks_never_need_more(kind: str) -> None:
    ranks = (2, 3, 4, 8, 16)
    sizes = [estimate(sharded(full(MISTRAL), kind, num_ranks=count)).peak_bytes for count in ranks]
    assert sizes == sorted(sizes, reverse=True)


def test_checkpointing_and_chunks_save_memory() -> None:
    setting = with_lora(MISTRAL, micro_batch=8, seq_len=2048)
    plain = estimate(replace(setting, checkpointing="none")).peak_bytes
    checkpointed = estimate(setting).peak_bytes
    chunked = estimate(replace(setting, loss="chunked", loss_chunk_tokens=512)).peak_bytes
    assert chunked < checkpointed < plain


# --- published figures -------------------------------------------------------------------------------


def _per_token(setting: Setting) -> float:
    small, large = (estimate(replace(setting, micro_batch=rows)).peak_bytes for rows in (4, 8))
    return (large - small) / (4 * setting.seq_len)


def test_a_token_of_the_plain_loss_costs_what_was_measured() -> None:
    """Mistral-7B, LoRA, plain loss: 734,724 bytes a token."""
    assert _per_token(published(pure=True)) == pytest.approx(734_724, rel=1e-4)


def test_a_token_of_the_fused_linear_loss_costs_what_was_measured() -> None:
    """Llama-3-8B, LoRA in bf16, fused norm, rotation and loss: 528,679 bytes a token."""
    model = shape("meta-llama/Meta-Llama-3-8B")
    setting = replace(published(), shape=model, adapter=lora(model), repeats_kv=False)
    assert _per_token(replace(setting, loss="linear_fused", fused_norm=True)) == pytest.approx(
        528_679, rel=5e-3
    )


def test_foreach_adamw_peaks_in_the_step_whatever_the_batch() -> None:
    """Mistral-7B in pure bf16: 72.435e9 bytes from 4 x 4,096 to 8 x 4,096 tokens."""
    for rows in (4, 8):
        setting = full(
            MISTRAL,
            micro_batch=rows,
            seq_len=4096,
            weights_dtype="bfloat16",
            trainable_dtype="bfloat16",
            pure=True,
            optimizer="adamw_foreach",
            attention="flash",
            evaluates=False,
        )
        found = estimate(setting)
        assert found.peak.name == "optimizer"
        assert found.peak_bytes == pytest.approx(72.435e9, rel=5e-4)


def test_b023_fp32_adam_needs_sixteen_bytes_a_parameter_and_the_step_says_so() -> None:
    model = shape("meta-llama/Llama-2-7b-hf")
    found = estimate(full(model, seq_len=128))
    assert phase(found, "optimizer").num_bytes >= 16 * model.num_params
    before = phase(found, "load").num_bytes + 4 * model.num_params
    assert phase(found, "optimizer").num_bytes > 1.9 * before  # moments come with the first step


def test_b024_what_official_estimators_leave_out_is_most_of_the_memory() -> None:
    """States of a 6.8B model under ZeRO-3 with everything offloaded: 0.49 GB said, 14.7 to 21.3 GB used."""
    model = shape("meta-llama/Llama-2-7b-hf")
    offloaded = sharded(
        full(model, micro_batch=8, seq_len=1024, checkpointing="full"),
        "zero3",
        sharding=OFFLOADED,
        reduce_bucket_elements=500_000_000,
        prefetch_bucket_elements=500_000_000,
    )
    found = estimate(offloaded)
    assert found.peak_bytes > 10 * 0.49e9
    lines = {each.name for one in found.phases for each in one.terms}
    assert {"gathered weights", "reduce buckets", "logits and loss"} <= lines
    halved = estimate(replace(offloaded, num_ranks=2)).peak_bytes
    assert halved == pytest.approx(found.peak_bytes, rel=0.05)  # the same on 2 and on 4 cards


def test_b026_evaluation_has_a_peak_of_its_own() -> None:
    setting = with_lora(MISTRAL, seq_len=2048)
    small, large = (estimate(replace(setting, eval_batch=rows)) for rows in (1, 16))
    assert phase(large, "evaluate").num_bytes > phase(small, "evaluate").num_bytes
    assert phase(large, "forward") == phase(small, "forward")
    assert estimate(replace(setting, eval_batch=64)).peak.name == "evaluate"


def test_b027_gathering_a_whole_state_on_the_card_is_charged_to_saving() -> None:
    model = shape("meta-llama/Llama-2-7b-hf")
    setting = sharded(full(model), num_ranks=8, loads_whole=False)
    ours, theirs = estimate(setting), estimate(replace(setting, save_gathers=True))
    assert phase(theirs, "save").num_bytes > 4 * model.num_params
    assert theirs.peak.name == "save"
    assert phase(ours, "save").num_bytes < 0.7 * phase(theirs, "save").num_bytes


def test_b016_adapters_inside_a_flat_parameter_get_dense_gradients() -> None:
    wrapped = sharded(with_lora(MISTRAL), "fsdp1")
    unwrapped = estimate(replace(wrapped, adapters_apart=False))
    dense = term(unwrapped, "backward", "dense gradients")
    assert dense == 2 * (P // 4 + MISTRAL.block_params)
    assert term(estimate(wrapped), "backward", "dense gradients") == 0
    assert unwrapped.peak_bytes > estimate(wrapped).peak_bytes


def test_b013_a_tied_matrix_is_counted_once() -> None:
    tied = shape("Qwen/Qwen2.5-0.5B")
    assert tied.tied
    assert term(estimate(full(tied)), "load", "weights") == 4 * tied.num_params
    assert tied.num_params < 500e6  # 494 million; 630 million if the head were another matrix


def test_b029_the_worst_batch_decides_and_changing_lengths_widen_the_range() -> None:
    model = shape("bert-base-uncased", task="classification")
    kept = full(model, micro_batch=16, checkpointing="none")
    short, long = (estimate(replace(kept, seq_len=length)) for length in (64, 512))
    assert long.peak_bytes > 2 * short.peak_bytes
    changing = estimate(full(model, micro_batch=16, variable_length=True))
    steady = estimate(full(model, micro_batch=16))
    assert _width(changing.reserved_bytes) > 2 * _width(steady.reserved_bytes)


def _width(bounds: tuple[int, int]) -> int:
    return bounds[1] - bounds[0]


def test_ranges_lie_above_the_allocated_figure_and_end_at_the_card() -> None:
    setting = with_lora(MISTRAL, micro_batch=16, seq_len=2048)
    free = estimate(setting)
    assert free.peak_bytes < free.reserved_bytes[0] < free.reserved_bytes[1] < free.process_bytes[1]
    card = int(free.peak_bytes * 1.05)
    bound = estimate(setting, usable_bytes=card)
    assert bound.reserved_bytes[1] <= card


def test_without_autocasts_cache_checkpointing_lets_cast_weights_go() -> None:
    kept, dropped = (estimate(full(MISTRAL, autocast_cache=cached)) for cached in (True, False))
    assert term(kept, "forward", "autocast weight copies") == 2 * 32 * LINEAR
    assert term(dropped, "forward", "autocast weight copies") == 0
    assert phase(dropped, "evaluate").num_bytes < phase(kept, "evaluate").num_bytes
    # saved products hold them without checkpointing, cache or no cache
    plain = estimate(full(MISTRAL, autocast_cache=False, checkpointing="none"))
    assert term(plain, "forward", "autocast weight copies") == 2 * 32 * LINEAR
