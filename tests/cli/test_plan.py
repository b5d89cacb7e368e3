"""`launcher plan`: verdicts and exit codes, for people and for programs, without torch."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher.recipe.library import names
from launcher.units import GIB

Run = Callable[..., tuple[int, str, str]]


def planned(run_verb: Run, *words: str) -> tuple[int, dict[str, Any]]:
    code, out, err = run_verb("plan", *words, "--json")
    assert out, err
    return code, json.loads(out)


@pytest.mark.parametrize("name", names())
def test_every_shipped_recipe_fits_its_card_or_says_why_it_cannot_be_told(name: str, run_verb: Run) -> None:
    code, out, err = run_verb("plan", name)
    assert code in (0, 3), out + err
    if code == 3:
        assert "right:" in err
    else:
        assert "fits" in out.splitlines()[0]
        assert "standing: " in out and "host RAM" in out and "disk" in out


def test_the_peak_is_the_largest_phase_and_phases_are_the_sums_of_their_terms(run_verb: Run) -> None:
    code, found = planned(run_verb, "lora_7b_3090")
    asked = found["asked"]
    assert code == 0 and found["fits"] is True and found["gpu"] == "rtx3090"
    assert asked["peak_bytes"] == max(phase["bytes"] for phase in asked["phases"])
    for phase in asked["phases"]:
        assert phase["bytes"] == sum(term["bytes"] for term in phase["terms"])
        assert "other" not in {term["name"] for term in phase["terms"]}
    assert asked["peak_bytes"] < asked["needed_bytes"] <= found["usable_bytes"]


def test_b023_what_does_not_fit_names_the_phase_and_the_nearest_that_does(run_verb: Run) -> None:
    words = ("lora_7b_3090", "adapter=full", "dtype=auto", "precision=auto", "--gpu", "a100_pcie_80")
    code, out, _ = run_verb("plan", *words)
    assert code == 1
    first, why, nearest = out.splitlines()[:3]
    assert "does not fit" in first and "GiB over" in first
    assert "over in" in why and nearest.strip().startswith("nearest: ")
    _, found = planned(run_verb, *words)
    assert found["chosen"]["fits"] and found["chosen"]["changes"]


def test_b023_adams_states_are_counted_before_the_first_step(run_verb: Run) -> None:
    _, found = planned(run_verb, "lora_7b_3090", "adapter=full", "dtype=auto", "--gpu", "h200")
    step = next(phase for phase in found["asked"]["phases"] if phase["name"] == "optimizer")
    assert step["bytes"] >= 16 * 7.07e9


def test_the_nearest_is_a_plan_of_its_own(run_verb: Run) -> None:
    code, found = planned(run_verb, "lora_7b_3090", "--gpu", "rtx3060")
    assert code == 1 and not found["asked"]["fits"]
    chosen = found["chosen"]["type"].replace("--backend ", "backend=").split()
    again, same = planned(run_verb, "lora_7b_3090", "--gpu", "rtx3060", *chosen)
    assert again == 0 and same["asked"]["peak_bytes"] == found["chosen"]["peak_bytes"]


def test_alternatives_fit_and_the_refused_say_by_how_much(run_verb: Run) -> None:
    _, found = planned(run_verb, "full_0.5b_a100")
    assert found["alternatives"] and all(each["fits"] for each in found["alternatives"])
    shown = found["chosen"]["step_s"]
    for each in found["faster_that_do_not_fit"]:
        assert each["step_s"] < shown and "over in" in each["why_not"]


def test_b029_the_longest_rows_are_planned_for(run_verb: Run) -> None:
    sizes = [
        planned(run_verb, "lora_7b_3090", f"max_length={n}")[1]["asked"]["peak_bytes"]
        for n in (128, 512, 1024)
    ]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_b024_more_rows_tokens_or_fewer_ranks_never_need_less(run_verb: Run) -> None:
    def peak(*words: str) -> int:
        return int(planned(run_verb, "lora_7b_3090", "--gpu", "h200", *words)[1]["asked"]["peak_bytes"])

    assert peak("per_device_train_batch_size=1") < peak("per_device_train_batch_size=8")
    full = ("adapter=full", "dtype=auto", "precision=auto", "backend=zero3")
    alone, four = peak(*full, "--gpus", "1"), peak(*full, "--gpus", "4")
    assert four < alone


def test_b021_host_memory_over_the_given_limit_is_a_verdict(run_verb: Run) -> None:
    words = ("lora_7b_3090", "--gpus", "4")
    code, found = planned(run_verb, *words, "--host-memory", "8GiB")
    assert code == 1 and found["host"]["bytes"] > 8 * GIB and not found["host"]["fits"]
    assert found["asked"]["fits"]
    text = run_verb("plan", *words, "--host-memory", "8GiB")[1]
    assert "host memory is" in text.splitlines()[0]
    enough = int(found["host"]["bytes"] / GIB) + 1
    assert planned(run_verb, *words, "--host-memory", f"{enough}GiB")[0] == 0


def test_b078_the_machines_own_limit_names_its_source(run_verb: Run) -> None:
    _, found = planned(run_verb, "lora_7b_3090")
    assert found["host"]["limit_source"]
    _, given = planned(run_verb, "lora_7b_3090", "--host-memory", "90GiB")
    assert given["host"]["limit_source"] == "--host-memory" and given["host"]["limit_bytes"] == 90 * GIB


def test_rows_give_the_length_and_the_price_of_a_run(run_verb: Run) -> None:
    code, found = planned(run_verb, "lora_7b_3090", "--rows", "16000")
    time, cost = found["time"], found["cost"]
    assert code == 0 and time["steps_per_epoch"] == 1000 and time["total_steps"] == 3000
    assert time["run_s"] == pytest.approx(3000 * time["step_s"])
    assert cost["run"][0] == pytest.approx(time["run_s"] / 3600 * cost["per_card_hour"][0])
    assert "2026" in cost["source"]


def test_missing_data_leaves_the_rows_unknown_and_says_so(run_verb: Run) -> None:
    code, out, _ = run_verb("plan", "lora_7b_3090")
    assert code == 0 and "rows unknown" in out and "--rows N" in out


def test_prices_of_ones_own(run_verb: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("gpu,price_per_h,currency,date\nrtx3090,2.5,EUR,2026-11-30\n", encoding="utf-8")
    _, found = planned(run_verb, "lora_7b_3090", "--rows", "160", "--prices", str(file))
    assert found["cost"]["currency"] == "EUR" and found["cost"]["per_card_hour"] == [2.5, 2.5]


def test_a_sweep_has_a_line_a_combination_and_keeps_the_refused_ones(run_verb: Run) -> None:
    words = ("plan", "lora_7b_3090", "--sweep", "gpu=rtx3090,a100_40", "gpus=1,2,3")
    code, out, _ = run_verb(*words)
    lines = out.splitlines()
    assert code == 0 and len(lines) == 2 + 6
    assert sum("do not divide evenly" in line for line in lines) == 2
    assert any(line.startswith("2 x a100_pcie_40") and " yes " in line for line in lines)
    found = json.loads(run_verb(*words, "--json")[1])
    assert [each.get("error") is None for each in found] == [True, True, False] * 2


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("lora_7b_3090", "--gpu", "rtx3091"), 2, "unknown GPU 'rtx3091'"),
        (("lora_7b_3090", "--gpus", "3"), 2, "do not divide evenly"),
        (("lora_7b_3090", "--gpus", "none"), 2, "'none' is no number"),
        (("lora_7b_3090", "--backend", "zero9"), 2, "zero9"),
        (("lora_7b_3090", "--sweep", "card=rtx3090"), 2, "unknown key 'card'"),
        (("lora_7b_3090", "--host-memory", "much"), 2, "'much' is no size"),
        (("lora_7b_3090", "--prices", "none.csv"), 2, "cannot be read"),
        (("lora_7b_3090", "--svg", "none/plan.svg"), 2, "cannot be written"),
        (("lora_7b_3090", "precision=bf16", "--gpu", "v100_32_pcie"), 1, "no bf16 units"),
        (("nosuchrecipe",), 2, "nosuchrecipe"),
        ((), 2, "no recipe was named"),
        (("lora_7b_3090", "model_name_or_path=someone/unknown-13b"), 3, "someone/unknown-13b"),
    ],
)
def test_a_mistake_is_named_with_its_exit_code(
    words: tuple[str, ...], code: int, says: str, run_verb: Run
) -> None:
    found, _, err = run_verb("plan", *words)
    assert found == code, err
    assert says in err and "type:" in err


def test_b007_packed_weights_on_zero3_are_refused_with_one_that_is_planned_to_fit(run_verb: Run) -> None:
    words = ("qwen2.5_7b_lora_3090", "load_in_4bit=true", "--gpus", "2")
    code, _, err = run_verb("plan", *words, "--backend", "zero3")
    assert code == 2 and "zero2" in err
    assert planned(run_verb, *words, "--backend", "zero2")[0] == 0


def test_old_cards_are_planned_in_fp16(run_verb: Run) -> None:
    _, found = planned(run_verb, "roberta_large_meld_3090", "--gpu", "v100_32_pcie")
    assert found["asked"]["precision"] == "fp16"


def test_b059_cards_without_peers_wait_longer_for_one_another(run_verb: Run) -> None:
    def waiting(gpu: str) -> float:
        words = ("qwen2.5_7b_lora_3090", "--gpu", gpu, "--gpus", "4", "--backend", "zero3")
        time = planned(run_verb, *words)[1]["time"]
        return next(term["seconds"] for term in time["terms"] if term["name"] == "communication")

    assert waiting("a100_sxm_80") < 0.2 * waiting("rtx4090")


def test_the_picture_shows_every_phase(run_verb: Run, tmp_path: Path) -> None:
    code, _, err = run_verb("plan", "lora_7b_3090", "--svg", str(tmp_path / "plan.svg"))
    drawn = (tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert code == 0 and "drawn" in err
    assert all(f">{name}</text>" in drawn for name in ("load", "forward", "backward", "optimizer", "save"))


def test_planning_imports_no_torch(fresh: Callable[..., Any]) -> None:
    heavy = ["torch", "transformers", "accelerate", "deepspeed", "peft", "datasets", "numpy"]
    code = (
        "import sys; from launcher.cli.main import main\n"
        "code = main(['plan', 'lora_7b_3090', '--sweep', 'gpu=rtx3090', 'gpus=1,2'])\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = fresh("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
