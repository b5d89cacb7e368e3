"""A plan made before against what was started."""

import json
from pathlib import Path

import pytest

from launcher.errors import BadValue, LaunchMismatch
from launcher.facts import Plan, StepSettings
from launcher.plan.compare import read_plan, require_same


def made(ranks: int, backend: str = "zero2", batch: int = 32) -> Plan:
    step = StepSettings(global_batch_size=batch, micro_batch_size=1, accumulation_steps=1, num_ranks=ranks)
    return Plan(
        recipe_name="job",
        backend=backend,
        device="cpu",
        step=step,
        precision="fp32",
        weights_dtype="float32",
        learning_rate=1e-3,
        fingerprint="f",
    )


def test_b001_another_number_of_processes_is_refused_with_the_command() -> None:
    with pytest.raises(LaunchMismatch) as caught:
        require_same(made(4).to_dict(), made(1))
    assert "planned 4 processes, found 1" in str(caught.value)
    assert "launcher run job --backend zero2 --gpus 4" in str(caught.value)


@pytest.mark.parametrize("other", [made(4, backend="multi_gpu"), made(4, batch=16)])
def test_another_backend_or_batch_is_refused(other: Plan) -> None:
    with pytest.raises(LaunchMismatch):
        require_same(made(4).to_dict(), other)
    require_same(made(4).to_dict(), made(4))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"backend": "x", "step": 3}', "nonsense"])
def test_a_file_that_is_no_plan_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(BadValue, match="plan"):
        read_plan(path)


def test_a_written_plan_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(made(2).to_dict()))
    require_same(read_plan(path), made(2))
