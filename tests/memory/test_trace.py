"""A trace: two depths stand for all, terms add up, and what cannot be traced is said."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from launcher.backends.options import BACKENDS
from launcher.errors import BadValue, CannotTell
from launcher.memory.breakdown import Breakdown
from launcher.memory.trace import (
    TRACED_BACKENDS,
    DepthTrace,
    breakdown,
    depths,
    depths_of,
    extrapolate,
    trace,
)
from launcher.memory.trace_request import TraceRequest

LLAMA: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 10, "num_attention_heads": 4},
    **{"num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 256},
}
REQUEST = TraceRequest(config=LLAMA, micro_batch=2, seq_len=64, precision="bf16")


def _here(request: TraceRequest, wanted: tuple[int, ...]) -> Breakdown:
    """In this process: the subprocess costs seconds of imports."""
    from launcher.memory.trace_torch import record, summary

    found = []
    for depth in wanted:
        log, layers = record(request, depth=depth)
        found.append(DepthTrace(**summary(log, layers)))
    return breakdown(request, found, 10)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"checkpointing": True},
        {"adapter": {"method": "lora"}, "weights_dtype": "bfloat16", "checkpointing": True},
        {"backend": "fsdp2", "num_ranks": 4},
        {"optim": "adamw_torch", "accumulation_steps": 2},
    ],
    ids=["full", "checkpointing", "lora", "fsdp2", "foreach"],
)
def test_two_depths_give_every_phase_of_the_whole_depth(changes: dict[str, Any]) -> None:
    request = replace(REQUEST, **changes)
    short, whole = _here(request, (4, 6)), _here(request, (10,))
    # FSDP2's largest moment may be the root's in a shallow model and a block's in a deep one.
    bound = 0.03 if request.backend == "fsdp2" else 0.002
    for ours, theirs in zip(short.phases, whole.phases, strict=True):
        assert ours.name == theirs.name
        assert ours.num_bytes == pytest.approx(theirs.num_bytes, rel=bound)


def test_full_training_holds_weights_gradients_and_two_moments() -> None:
    found = _here(replace(REQUEST, kernels="cpu"), (10,))
    terms = {
        term.name: term.num_bytes for term in next(p for p in found.phases if p.name == "optimizer").terms
    }
    num_params = 10 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 512 * 64 + 64
    assert terms["gradients"] == pytest.approx(4 * num_params, rel=0.01)
    assert terms["optimizer states"] == pytest.approx(8 * num_params, rel=0.02)


def test_foreach_adamw_has_a_temporary_of_the_size_of_the_weights() -> None:
    def step_bytes(optim: Any) -> int:
        found = _here(replace(REQUEST, optim=optim), (4,))
        return next(phase.num_bytes for phase in found.phases if phase.name == "optimizer")

    num_params = 4 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 512 * 64 + 64
    assert step_bytes("adamw_torch") - step_bytes("adamw_torch_fused") == pytest.approx(
        4 * num_params, rel=0.05
    )


def test_a_chunked_loss_never_holds_all_the_logits() -> None:
    wide = replace(REQUEST, config=LLAMA | {"vocab_size": 8192})

    def peak(chunk: int | None) -> int:
        return _here(replace(wide, loss_chunk_bytes=chunk), (4,)).peak_bytes

    logits_bytes = 4 * 2 * 63 * 8192
    assert peak(None) - peak(8 * 4 * 8192) > logits_bytes


def test_b026_evaluation_keeps_nothing_for_a_backward_pass() -> None:
    found = {phase.name: phase.num_bytes for phase in _here(REQUEST, (10,)).phases}
    assert found["evaluate"] < found["forward"]


def test_b023_states_are_part_of_the_steady_state() -> None:
    found = next(p for p in _here(REQUEST, (10,)).phases if p.name == "forward")
    assert any(term.name == "optimizer states" for term in found.terms)


def test_fsdp2_holds_a_share_after_loading() -> None:
    single, sharded = _here(REQUEST, (10,)), _here(replace(REQUEST, backend="fsdp2", num_ranks=4), (10,))

    def weights(found: Breakdown) -> int:
        phase = next(p for p in found.phases if p.name == "optimizer")
        return next(term.num_bytes for term in phase.terms if term.name == "weights")

    assert weights(sharded) == pytest.approx(weights(single) / 4, rel=0.05)


def test_packed_weights_take_half_a_byte_and_their_scales() -> None:
    changes: dict[str, Any] = {"adapter": {"method": "lora"}, "weights_dtype": "bfloat16"}
    plain = _here(replace(REQUEST, **changes), (10,))
    packed = _here(replace(REQUEST, **changes, quantisation="nf4"), (10,))

    def weights(found: Breakdown) -> int:
        return next(t.num_bytes for t in found.phases[0].terms if t.name == "weights")

    in_blocks = 10 * (4 * 64 * 64 + 3 * 64 * 128)
    saved = weights(plain) - weights(packed)
    assert saved == pytest.approx(in_blocks * (2 - 0.5 - 4 / 64), rel=0.1)


def test_depths_follow_the_pattern_of_layers() -> None:
    assert depths({"num_hidden_layers": 32}) == (4, 6)
    assert depths({"n_layer": 5}) == (5,)
    mixed = ["sliding"] * 5 + ["full"]
    assert depths({"num_hidden_layers": 24, "layer_types": mixed * 4}) == (6, 12)
    with pytest.raises(CannotTell):
        depths({"hidden_size": 8})


def test_zero3_is_traced_beyond_the_depth_that_it_keeps_gathered() -> None:
    seven_billion = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008}
    zero3 = replace(REQUEST, config=seven_billion, backend="zero3", num_ranks=8)
    assert depths_of(zero3) == (10, 12)
    assert depths_of(replace(zero3, backend="zero2")) == (4, 6)
    assert depths_of(replace(zero3, backend_options={"stage3_max_live_parameters": 10_000_000})) == (5, 7)
    assert depths_of(replace(zero3, config=seven_billion | {"hidden_size": 1024})) == (32,)


def test_terms_are_straight_lines_in_the_number_of_layers() -> None:
    low = DepthTrace(layers=4, peaks={"forward/last": {"weights": 100, "batch": 8}}, reserved=0)
    high = DepthTrace(layers=6, peaks={"forward/last": {"weights": 140, "batch": 8}, "x": {}}, reserved=0)
    assert extrapolate((low, high), 10) == {"forward/last": {"weights": 220, "batch": 8}}


def test_an_unknown_architecture_is_refused_with_the_reason() -> None:
    with pytest.raises(CannotTell, match="cannot be traced"):
        trace(TraceRequest(config={"model_type": "no-such-model", "num_hidden_layers": 2}))


@pytest.mark.parametrize(
    ("backend", "why", "nearest"),
    [
        ("zero3_nvme", "on a disk", "--backend zero3_offload"),
        ("model_parallel", "several cards", "--backend single_gpu"),
    ],
)
def test_what_is_not_traced_is_said_with_the_nearest_that_is(backend: str, why: str, nearest: str) -> None:
    with pytest.raises(CannotTell, match=why) as caught:
        trace(replace(REQUEST, backend=backend, num_ranks=2))
    assert caught.value.problems[0].type.endswith(nearest)


def test_every_backend_is_traced_or_refused() -> None:
    for name in BACKENDS.names():
        if name not in TRACED_BACKENDS:
            with pytest.raises(CannotTell, match="not traced"):
                trace(replace(REQUEST, backend=name, num_ranks=2))


BERT = {"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2}
ELECTRA = BERT | {"model_type": "electra", "embedding_size": 32}
DISTILBERT = {"model_type": "distilbert", "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}
HEADS = {"num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 512}


@pytest.mark.parametrize("config", [DISTILBERT, ELECTRA], ids=["distilbert", "electra"])
def test_virtual_tokens_in_front_of_an_encoder_are_traced(config: dict[str, Any]) -> None:
    from launcher.memory.trace_torch import record

    adapter = {"method": "p_tuning", "num_virtual_tokens": 4}
    request = replace(REQUEST, config=config | HEADS, task="classification", adapter=adapter)
    assert "adapter" in record(request)[0].peaks()["optimizer"].by_tag


def test_what_the_recipe_cannot_have_is_handed_back_by_the_process_that_traces() -> None:
    request = replace(REQUEST, config=BERT | HEADS, task="classification", adapter={"method": "prefix"})
    with pytest.raises(BadValue, match="prefix"):
        trace(request)


def test_a_flat_copy_goes_by_host_ram_where_the_card_has_no_room_for_both() -> None:
    held = {"weights": 400, "weights as loaded": 400}
    found = [DepthTrace(layers=2, peaks={"load": held, "forward/before": {"weights": 400}}, reserved=0)]

    def load_bytes(**changes: Any) -> int:
        return breakdown(replace(REQUEST, num_ranks=2, **changes), found, 2).phases[0].num_bytes

    assert load_bytes(backend="zero2", card_bytes=700) == 400
    assert load_bytes(backend="zero2", card_bytes=900) == load_bytes(backend="zero2") == 800
    assert load_bytes(backend="fsdp2", card_bytes=700) == 800


def test_a_trace_in_its_own_process() -> None:
    found = trace(replace(REQUEST, config=LLAMA | {"num_hidden_layers": 2}))
    assert found.method == "trace"
    assert [phase.name for phase in found.phases] == [
        *("load", "forward", "backward", "optimizer", "evaluate", "save")
    ]
    assert found.peak_bytes <= found.reserved_bytes[0] <= found.reserved_bytes[1]


def test_starting_a_trace_imports_no_torch() -> None:
    code = "import sys, launcher.memory.trace as t; assert 'torch' not in sys.modules, 'torch'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_request_survives_its_own_json() -> None:
    assert TraceRequest.from_json(REQUEST.to_json()) == REQUEST
