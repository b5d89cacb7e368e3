"""The reading of published memory figures: free text by its words, and honest counting."""

import csv
import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

KEYS = {
    *("rows", "coverage", "median_abs", "p90_abs", "worst_under", "range_share", "range_width"),
    *("oom_rows", "false_fits", "fit_rows", "false_alarms"),
}
MISTRAL = {
    **{"source": "a harness", "model_id": "Mistral-7B", "arch": "mistral", "params_total": "7241732096"},
    **{"hidden": "4096", "layers": "32", "heads": "32", "kv_heads": "8", "head_dim": "128"},
    **{"intermediate": "14336", "vocab": "32000", "tied": "no", "method": "LoRA", "lora_r": "16"},
    **{"lora_targets": "q,k,v,o", "weights_dtype": "bfloat16; LoRA fp32", "mp_scheme": "none (pure bf16)"},
    **{"optimizer": "torch AdamW (foreach)", "micro_batch": "4", "seq_len": "4096", "grad_ckpt": "yes"},
    **{"seq_mode": "packed", "attn": "flash-attn 2", "loss_impl": "HF CE", "backend": "single"},
    **{"n_gpus": "1", "gpu": "A100-80GB", "gpu_mem_gib": "80", "figure_kind": "peak"},
    **{"peak_alloc_gib": "24.871", "nvsmi_gib": "28.883", "completeness": "A", "row_id": "1"},
}


@pytest.fixture(scope="module")
def accuracy(root: Path) -> ModuleType:
    sys.path.insert(0, str(root / "benchmarks"))
    try:
        path = root / "benchmarks/memory_accuracy.py"
        spec = importlib.util.spec_from_file_location("benchmarks_memory_accuracy", path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(root / "benchmarks"))
    return module


def _row(**changes: str) -> dict[str, str]:
    return MISTRAL | changes


def _file(tmp_path: Path, rows: list[dict[str, str]]) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, [*MISTRAL])
    writer.writeheader()
    writer.writerows(rows)
    path = tmp_path / "rows.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def test_a_published_row_is_met_and_lies_in_its_range(accuracy: ModuleType) -> None:
    found = accuracy.judge(_row())
    assert abs(found.error) < 0.005
    assert found.is_inside
    assert found.says_fits


def test_an_unpredictable_row_counts_against_coverage_with_its_reason(
    accuracy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [_row(), _row(row_id="2", method="LISA"), _row(row_id="3", hidden="")]
    assert accuracy.main([str(_file(tmp_path, rows)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["overall"]) >= KEYS
    assert found["overall"]["coverage"] == pytest.approx(1 / 3)
    assert [each["row"] for each in found["unpredicted"]] == ["2", "3"]
    assert all(each["reason"] for each in found["unpredicted"])
    assert {(each["method"], each["backend"]) for each in found["groups"]} == {
        ("LoRA", "single"),
        ("LISA", "single"),
    }


def test_false_fits_and_false_alarms_are_counted_among_their_own_rows(accuracy: ModuleType) -> None:
    rows = [
        _row(figure_kind="oom"),  # it is predicted to fit: a false fit
        _row(gpu="RTX 4090", gpu_mem_gib="24"),  # it is predicted not to: a false alarm
        _row(figure_kind="oom", gpu="RTX 4090", gpu_mem_gib="24"),
    ]
    found = accuracy.summary([accuracy.judge(row) for row in rows])
    assert (found["oom_rows"], found["false_fits"]) == (2, 1)
    assert (found["fit_rows"], found["false_alarms"]) == (1, 1)


def test_only_rows_of_the_best_grade_count_overall(accuracy: ModuleType) -> None:
    found, _ = accuracy.report([_row(), _row(completeness="B"), _row(completeness="B")])
    assert found["overall"]["rows"] == 1
    assert found["all_grades"]["rows"] == 3
    found, _ = accuracy.report([_row(completeness="B")])
    assert found["overall"]["rows"] == 1


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"method": "Full fine-tuning"}, {"method": "full", "adapter": None}),
        ({"optimizer": "adamw_torch_fused"}, {"optimizer": "adamw_fused"}),
        ({"optimizer": "PagedAdamW8bit"}, {"optimizer": "paged_adamw_8bit"}),
        ({"optimizer": "bnb AdamW 8-bit"}, {"optimizer": "adamw_8bit"}),
        ({"optimizer": "AdamW, step fused in backward"}, {"optimizer_in_backward": True}),
        ({"attn": "SDPA"}, {"attention": "sdpa"}),
        ({"attn": "flash_attention_2"}, {"attention": "flash"}),
        ({"loss_impl": "Liger fused linear CE"}, {"loss": "linear_fused"}),
        ({"loss_impl": "fused Triton CE"}, {"loss": "fused"}),
        ({"grad_ckpt": "False"}, {"checkpointing": "none"}),
        ({"backend": "DeepSpeed ZeRO stage 3", "n_gpus": "4"}, {"sharding_kind": "zero3", "num_ranks": 4}),
        ({"backend": "FSDP2 (fully_shard)", "n_gpus": "2"}, {"sharding_kind": "fsdp2"}),
        ({"backend": "FSDP1 FULL_SHARD", "n_gpus": "2"}, {"sharding_kind": "fsdp1"}),
        ({"backend": "DDP", "n_gpus": "2"}, {"sharding_kind": "none", "ddp_bucket_view": False}),
        ({"seq_mode": "padded to longest in batch"}, {"variable_length": True}),
    ],
)
def test_columns_are_read_by_their_words(
    accuracy: ModuleType, changes: dict[str, str], facts: dict[str, object]
) -> None:
    setting = accuracy.read(_row(**changes)).setting
    assert {key: getattr(setting, key) for key in facts} == facts


def test_what_is_assumed_is_said(accuracy: ModuleType) -> None:
    assumed = accuracy.read(_row(attn="", grad_ckpt="", micro_batch="")).assumed
    assert len(assumed) == 3


def test_a_figure_of_an_unstated_measure_is_no_allocated_memory(accuracy: ModuleType) -> None:
    unstated = {"peak_alloc_gib": "", "nvsmi_gib": ""}
    row = _row(**unstated) | {"mem_gib": "25", "mem_measure": 'unstated ("memory (GB)")'}
    assert accuracy.read(row).figures.allocated is None
    assert accuracy.read(row | {"mem_measure": "torch.cuda.max_memory_allocated"}).figures.allocated == 25


def test_percentiles_lie_between_their_neighbours(accuracy: ModuleType) -> None:
    assert accuracy.percentile([0.0, 1.0, 2.0], 0.9) == pytest.approx(1.8)
    assert accuracy.percentile([], 0.9) is None
