"""A comparison: its cells, its table, its bars."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from launcher.errors import BadValue
from launcher.report.compare_cells import Cell, cells, read_axis, read_seeds
from launcher.report.compare_plot import svg
from launcher.report.compare_run import Outcome
from launcher.report.compare_table import as_json, rows, text


def test_commas_inside_brackets_belong_to_a_value() -> None:
    axis = read_axis("freeze.schedule={0: [head, pooler]},{0: head, 2: all}")
    assert axis.key == "freeze.schedule" and axis.values == ("{0: [head, pooler]}", "{0: head, 2: all}")


@pytest.mark.parametrize("typed", ["adapter.method", "adapter.method=", "=a,b", "a=1,,2", "a=1,1"])
def test_an_axis_without_values_is_refused(typed: str) -> None:
    with pytest.raises(BadValue, match="--vary"):
        read_axis(typed)


@pytest.mark.parametrize("typed", ["", "a", "1,1", "1,-2"])
def test_seeds_are_different_whole_numbers(typed: str) -> None:
    with pytest.raises(BadValue, match="--seeds"):
        read_seeds(typed)


def test_every_combination_for_every_seed() -> None:
    found = cells([read_axis("adapter.method=full,lora"), read_axis("max_steps=3,5")], (1, 2))
    assert len(found) == 8 and len({cell.folder for cell in found}) == 8
    assert found[0].overrides == ("adapter.method=full", "max_steps=3", "training.seed=1")
    assert found[0].label == "method=full max_steps=3" and found[0].folder.endswith("-seed1")
    with pytest.raises(BadValue, match="varied twice"):
        cells([read_axis("a=1,2"), read_axis("a=3,4")])


def test_long_labels_stay_file_names_and_different() -> None:
    schedules = [("freeze.schedule", f"{{0: [head], 2: {'x' * 90}{tail}}}") for tail in "ab"]
    names = {Cell(settings=(pair,)).folder for pair in schedules}
    assert len(names) == 2 and all(len(name) < 120 and "/" not in name and " " not in name for name in names)


def outcome(method: str, seed: int, quality: float | None, why: str = "") -> Outcome:
    summary: dict[str, Any] | None = None
    if quality is not None:
        summary = {
            "trained_parameters": 1000,
            "samples_per_s": 10.0 * seed,
            "quality": {"accuracy": quality},
            "memory": {
                "predicted": {"peak_bytes": 2**20},
                "measured": {"peak_resident_bytes": 2**20 * (1 + seed)},
            },
        }
    return Outcome(cell=Cell(settings=(("adapter.method", method),), seed=seed), why=why, summary=summary)


FOUND = [outcome("full", 1, 0.5), outcome("full", 2, 0.7), outcome("lora", 1, None, "no room <here>")]


def test_a_row_is_mean_and_spread_over_seeds() -> None:
    full, lora = rows(FOUND, "accuracy")
    assert (full.quality, full.spread) == pytest.approx((0.6, 0.1414214))
    assert (full.samples_per_s, full.measured_bytes, full.predicted_bytes) == (15, 3 * 2**20, 2**20)
    assert lora.quality is None and lora.why == "seed 1: no room <here>"


def test_the_table_says_what_failed_and_why() -> None:
    shown = text(rows(FOUND, "accuracy"), "accuracy")
    assert "0.6000 ± 0.1414" in shown and "method=lora: seed 1: no room <here>" in shown
    assert as_json(rows(FOUND, "accuracy"), "accuracy")["rows"][0]["num_seeds"] == 2


def test_the_table_says_what_was_held_before_the_model_where_a_whole_process_was_measured() -> None:
    held = outcome("full", 1, 0.5)
    assert held.summary is not None
    assert "before the model was loaded" not in text(rows([held], "accuracy"), "accuracy")
    held.summary["memory"]["measured"]["resident_at_start_bytes"] = 3 * 2**20
    found = rows([held, outcome("lora", 1, None, "no room")], "accuracy")
    assert found[0].held_at_start_bytes == 3 * 2**20 and found[1].held_at_start_bytes is None
    assert "3.0 MiB before the model was loaded" in text(found, "accuracy")


def test_bars_are_as_long_as_their_figures() -> None:
    more = rows([*FOUND, outcome("ia3", 1, 0.3)], "accuracy")
    root = ElementTree.fromstring(svg(more, "accuracy"))  # noqa: S314  our own text
    names = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "accuracy" in names and "0.6000" in names and "method=lora" in names
    bars = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.get("fill") == "#31688e"]
    widths = [float(each.get("width", "0")) for each in bars]
    assert len(widths) == 2 and widths[0] == pytest.approx(2 * widths[1], rel=0.01)
