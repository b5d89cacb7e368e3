"""Earlier runs of a recipe on one kind of card, read from what they left."""

import json
from pathlib import Path
from typing import Any

from launcher.plan.records import records
from launcher.units import GIB


def left(folder: Path, name: str, recipe: str = "job", **plan: Any) -> None:
    facts = {
        "recipe_name": recipe,
        "device": "cuda",
        "gpu_name": "NVIDIA GeForce RTX 3090",
        "gpu_memory_bytes": int(23.69 * GIB),
        "backend": "single_gpu",
        "num_ranks": 1,
        "micro_batch_size": 4,
    } | plan
    summary = {
        "plan": facts,
        "memory": {
            "predicted": {"peak_bytes": 14 * GIB},
            "measured": {"peak_allocated_bytes": 15 * GIB},
        },
        "throughput": {"tokens_per_s": 900.0, "predicted_tokens_per_s": 1000.0},
    }
    (folder / name).mkdir()
    (folder / name / "summary.json").write_text(json.dumps(summary), encoding="utf-8")


def test_only_this_recipe_on_this_kind_of_card(tmp_path: Path) -> None:
    left(tmp_path, "mine")
    left(tmp_path, "doubled", gpu_memory_bytes=int(47.4 * GIB))
    left(tmp_path, "other", recipe="other")
    left(tmp_path, "cpu", device="cpu")
    [found] = records(tmp_path, "job", "rtx3090")
    assert found.folder == str(tmp_path / "mine")
    assert (found.predicted_bytes, found.measured_bytes) == (14 * GIB, 15 * GIB)
    assert (found.predicted_tokens_per_s, found.tokens_per_s) == (1000.0, 900.0)
    assert [record.folder for record in records(tmp_path, "job", None)] == [str(tmp_path / "cpu")]


def test_older_or_broken_summaries_are_passed_over(tmp_path: Path) -> None:
    for name, text in {"old": '{"steps": 3}', "cut": '{"plan": {', "odd": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(text, encoding="utf-8")
    assert records(tmp_path, "job", "rtx3090") == []
    assert records(tmp_path / "nothing", "job", None) == []
