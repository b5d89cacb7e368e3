"""The check of predictions on a card: skips with a reason, compares honestly, runs shrunk on a CPU."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from launcher.memory.breakdown import Breakdown, Phase, Standing, Term


@pytest.fixture(scope="module")
def gpu_check(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_gpu_check", root / "benchmarks/gpu_check.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _predicted(num_bytes: int) -> Breakdown:
    phase = Phase(name="forward", terms=(Term(name="weights", num_bytes=num_bytes, formula="2P"),))
    return Breakdown(
        phases=(phase,),
        reserved_bytes=(num_bytes, 2 * num_bytes),
        process_bytes=(num_bytes, 3 * num_bytes),
        standing=Standing(kind="derived"),
    )


def test_without_a_card_it_skips_with_the_reason(root: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a card")
    done = subprocess.run(
        [sys.executable, "benchmarks/gpu_check.py"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("gpu-check: skipped: torch")
    assert "CUDA" in done.stdout


def test_an_old_library_is_a_reason_to_skip(gpu_check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu_check.NEEDS, "torch", (99, 0))
    assert "older than 99.0" in gpu_check.skip_reason("cpu")
    monkeypatch.setitem(gpu_check.NEEDS, "no_such_library", (1, 0))
    monkeypatch.delitem(gpu_check.NEEDS, "torch")
    monkeypatch.delitem(gpu_check.NEEDS, "transformers")
    assert gpu_check.skip_reason("cpu") == "no_such_library is not installed"


def test_errors_are_predicted_over_measured(gpu_check: ModuleType) -> None:
    measured = {"phases": {}, "peak_allocated_bytes": 1000, "peak_reserved_bytes": 1500}
    row = gpu_check.row_of(gpu_check.CHECKS[0], measured, _predicted(1100), _predicted(950))
    assert row["estimate_error"] == pytest.approx(0.1)
    assert row["trace_error"] == pytest.approx(-0.05)
    assert row["reserved_in_range"] is True
    assert "+10.0%" in gpu_check.line_of(row)


def test_resident_memory_is_never_judged(gpu_check: ModuleType) -> None:
    row = gpu_check.row_of(gpu_check.CHECKS[0], {"peak_resident_bytes": 5}, _predicted(1), None)
    assert "estimate_error" not in row
    assert "resident" in gpu_check.line_of(row)


def test_what_has_no_published_truth_comes_first_and_every_setting_can_be_asked(
    gpu_check: ModuleType,
) -> None:
    names = [check.name for check in gpu_check.CHECKS]
    assert names.index("encoder, AMP") < names.index("zero3, one rank") < names.index("lora, sdpa")
    assert names.index("chunked loss") < names.index("full, fused AdamW")
    for check in gpu_check.CHECKS:
        for device in ("cuda", "cpu"):
            setting, request = gpu_check.request_for(check, device)
            assert setting.num_ranks == request.num_ranks == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder, AMP", "fsdp2, one rank", "lora beside 4-bit weights"])
def test_a_setting_runs_shrunk_on_a_cpu(gpu_check: ModuleType, root: Path, name: str) -> None:
    check = next(each for each in gpu_check.CHECKS if each.name == name)
    if check.package:
        pytest.importorskip(check.package, reason=f"{check.package} is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "benchmarks/gpu_check.py", "--one", name, "--device", "cpu"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["peak_resident_bytes"] > 0
    assert {"load", "step", "optimizer", "evaluate", "save"} <= set(found["phases"])
