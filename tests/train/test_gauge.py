"""MFU, time left, cost, and what a person sees of them."""

import json
from pathlib import Path

import pytest

from launcher.facts import Machine
from launcher.hardware import catalog
from launcher.models.read_shape import shape_of
from launcher.plan.model_flops import flops_per_token, mean_row_length, product_params
from launcher.plan.prices import Price
from launcher.train.display import Display, choose_mode, step_words
from launcher.train.gauge import Gauge, SpeedFacts, seconds_of_process
from launcher.train.history import earlier_seconds, note

PRICE = Price(low=1.5, high=2.0, currency="CNY", source="a test")
LINE = {"step": 5, "epoch": 0.5, "loss": 0.25, "learning_rate": 1e-4, "grad_norm": 1.0}
LINE |= {"samples_per_s": 12.345, "tokens_per_s": 4000.0, "memory_bytes": 2**31, "memory_now_bytes": 2**30}
LLAMA_7B = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
LLAMA_7B |= {"intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096}


def test_a_7b_models_products_are_its_parameters_without_embedding_and_norms() -> None:
    shape = shape_of(LLAMA_7B, task="causal_lm", num_labels=2)
    norms, embedding = (2 * 32 + 1) * 4096, 32000 * 4096
    assert product_params(shape) == 6_738_415_616 - norms - embedding


def test_flops_of_a_token_are_palms_for_full_training() -> None:
    """6 N + 12 L H Q T (appendix B of arXiv:2204.02311)."""
    shape = shape_of(LLAMA_7B, task="causal_lm", num_labels=2)
    weights = product_params(shape)
    found = flops_per_token(shape, trained=6_738_415_616, is_adapter=False, row_length=2048)
    assert found == 6 * weights + 12 * 32 * 32 * 128 * 2048


def test_an_adapter_saves_the_weights_gradients_and_a_frozen_model_all_gradients() -> None:
    shape = shape_of(LLAMA_7B, task="causal_lm", num_labels=2)
    weights = product_params(shape)
    assert flops_per_token(shape, trained=1000, is_adapter=True, row_length=0) == 4 * weights + 6 * 1000
    assert flops_per_token(shape, trained=0, is_adapter=False, row_length=0) == 2 * weights


def test_attention_sees_the_length_that_a_token_stands_in() -> None:
    assert mean_row_length([1, 3]) == pytest.approx((1 + 9) / 4)
    assert mean_row_length([]) == 0


def test_mfu_and_cost_are_left_out_where_the_card_is_not_known() -> None:
    gauge = Gauge(SpeedFacts(flops_per_token=1e9), total_steps=10, start=0)
    assert set(gauge(LINE)) == {"elapsed_s"}


def test_mfu_is_the_share_of_all_cards_peak_and_cost_is_for_all_of_them() -> None:
    facts = SpeedFacts(flops_per_token=4e9, peak_flops=2 * 71e12, price=PRICE, num_cards=2)
    assert facts.mfu(17_750.0) == pytest.approx(0.5)
    assert facts.cost(3600.0) == (3.0, 4.0)


def test_a_resumed_run_goes_on_paying(tmp_path: Path) -> None:
    lines = [json.dumps({"step": 1, "elapsed_s": 10.5}), json.dumps({"step": 2, "elapsed_s": 60.0}), '{"st']
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    before = earlier_seconds(tmp_path)
    assert before == 60.0
    gauge = Gauge(SpeedFacts(price=PRICE), total_steps=10, start=1, earlier_s=before)
    found = gauge(LINE)
    assert found["elapsed_s"] >= 60.0 and found["cost_low"] >= 60 / 3600 * 1.5 - 1e-4


def test_time_left_follows_from_the_steps_since_the_first_logged_one() -> None:
    gauge = Gauge(SpeedFacts(), total_steps=10, start=0)
    assert "eta_s" not in gauge(LINE | {"step": 1})
    assert gauge(LINE | {"step": 2})["eta_s"] >= 0
    assert "eta_s" not in gauge(LINE | {"step": 10})


def test_a_process_knows_how_long_it_runs() -> None:
    first = seconds_of_process()
    assert seconds_of_process() >= first >= 0


def test_every_card_has_a_peak_for_mfu() -> None:
    assert all(catalog.get(name).fp16_tflops > 0 for name in catalog.names())
    assert Machine(device="cpu", num_gpus=0).gpu_name == ""


@pytest.mark.parametrize(
    ("asked", "is_terminal", "mode"),
    [("auto", True, "bar"), ("auto", False, "lines"), ("quiet", True, "quiet"), ("lines", True, "lines")],
)
def test_a_bar_is_for_terminals_and_what_is_asked_for_is_done(
    asked: str, is_terminal: bool, mode: str
) -> None:
    assert choose_mode(asked, is_terminal=is_terminal) == mode


def test_lines_have_no_carriage_return_and_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for mode in ("lines", "quiet"):
        display = Display(mode, total_steps=10, start=0)
        display.advance(5)
        display.tell(
            LINE | {"mfu": 0.412, "eta_s": 75.0, "cost_low": 1.0, "cost_high": 1.5, "currency": "CNY"}
        )
        display.close()
    said = capsys.readouterr().err
    assert "\r" not in said and said.count("\n") == 1
    for part in (
        "step 5/10",
        "loss 0.2500",
        "4,000 tokens/s",
        "12.3 rows/s",
        "MFU 41%",
        "memory 1.00 (peak 2.00) GiB",
    ):
        assert part in said
    assert "left 1 min 15 s" in said and "cost 1.00-1.50 CNY" in said


def test_a_bar_shows_the_loss_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display("bar", total_steps=10, start=0)
    display.tell(LINE)
    assert display.bar is not None
    display.bar.refresh()  # by itself it draws ten times a second at most
    display.close()
    assert "loss 0.2500" in capsys.readouterr().err


def test_a_loss_that_is_not_a_number_is_shown_as_it_is() -> None:
    assert "loss nan" in step_words(LINE | {"loss": float("nan")}, 10)


def test_the_history_is_appended_to_and_keeps_reasons(tmp_path: Path) -> None:
    note(tmp_path, "started", 0, total_steps=10)
    note(tmp_path, "failed", 3, why="OutOfMemory: 2 GiB")
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [(line["event"], line["step"]) for line in lines] == [("started", 0), ("failed", 3)]
    assert lines[1]["why"] == "OutOfMemory: 2 GiB" and lines[1]["time"] >= lines[0]["time"]
