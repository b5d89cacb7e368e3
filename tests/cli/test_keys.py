"""`launcher keys`: what a recipe may say."""

import json
from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]


def test_a_key_is_found_by_a_part_of_its_name(run_verb: Run) -> None:
    code, out, _ = run_verb("keys", "lora_r")
    assert code == 0
    assert "adapter.lora_r: whole number, ≥ 1  [8]  (of lora)" in out


def test_all_keys_are_listed_without_a_pattern(run_verb: Run) -> None:
    code, out, _ = run_verb("keys")
    assert code == 0
    assert "training.learning_rate" in out
    assert "data.max_length.percentile" in out


def test_another_tools_name_leads_to_ours(run_verb: Run) -> None:
    _, out, _ = run_verb("keys", "cutoff_len")
    assert out.startswith("data.max_length")


def test_nothing_found_is_told_with_the_nearest(run_verb: Run) -> None:
    code, out, err = run_verb("keys", "lerning_rate")
    assert (code, out) == (1, "")
    assert "did you mean learning_rate?" in err
    assert "did you mean optim?" in run_verb("keys", "training.optm")[2]


def test_a_name_that_has_no_key_here_is_answered_with_what_stands_in_its_place(run_verb: Run) -> None:
    assert "training.global_batch_size" in run_verb("keys", "gradient_accumulation_steps")[2]
    assert "hardware.gpus" in run_verb("keys", "device_map")[2]
    assert "needs no saying" in run_verb("keys", "do_train")[2]


def test_the_schema_is_json(run_verb: Run) -> None:
    code, out, _ = run_verb("keys", "--json-schema")
    assert code == 0
    assert json.loads(out)["properties"]["training"]["properties"]["learning_rate"]["description"]


def test_the_page_is_markdown(run_verb: Run) -> None:
    code, out, _ = run_verb("keys", "--markdown")
    assert code == 0
    assert out.startswith("# Every key of a recipe")
