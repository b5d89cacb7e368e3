"""The loop's numbers against transformers' Trainer (repaired) and against a plain loop, in fp32."""

import json
import subprocess
import sys

import pytest

from tests.launching import ROOT

Curves = dict[str, dict[str, tuple[list[float], list[float]]]]
STEPS = 20


@pytest.fixture(scope="module")
def curves(tmp_path_factory: pytest.TempPathFactory) -> Curves:
    """Losses and gradient norms of every case; one process for all, imports cost most."""
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, "-m", "tests.train.reference", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: Curves = json.loads(done.stdout.splitlines()[-1])
    return found


def apart(curves: Curves, case: str, other: str, which: int = 0) -> float:
    """The largest difference from ours: 0 of the losses, 1 of the gradient norms."""
    ours, theirs = curves[case]["ours"][which], curves[case][other][which]
    assert len(ours) == len(theirs) == STEPS
    return max(abs(left - right) for left, right in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.parametrize("model", ["bert", "roberta", "llama"])
def test_the_first_losses_equal_the_repaired_trainers(curves: Curves, model: str, accumulation: int) -> None:
    case = f"{model}-{accumulation}"
    assert apart(curves, case, "trainer") < 1e-5
    assert apart(curves, case, "trainer", which=1) < 1e-4


@pytest.mark.parametrize("model", ["bert", "llama"])
def test_b070_uneven_windows_equal_one_step_on_the_whole_global_batch(curves: Curves, model: str) -> None:
    case = f"{model}-uneven"
    assert apart(curves, case, "plain") < 1e-5
    assert apart(curves, case, "plain", which=1) < 1e-4


@pytest.mark.parametrize(
    ("case", "wrong"),
    [("llama-4", "means"), ("llama-uneven", "means"), ("bert-uneven", "means"), ("bert-uneven", "unclipped")],
)
def test_a_wrong_normalisation_or_no_clipping_is_told_apart(curves: Curves, case: str, wrong: str) -> None:
    assert max(apart(curves, case, wrong), apart(curves, case, wrong, which=1)) > 1e-3


@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_the_stock_trainer_multiplies_encoder_losses_by_the_accumulation(curves: Curves, model: str) -> None:
    first = curves[f"{model}-4"]["stock"][0][0] / curves[f"{model}-4"]["ours"][0][0]
    if first == pytest.approx(1, abs=1e-4):
        pytest.skip("transformers' Trainer divides encoder losses by the accumulation steps again")
    assert first == pytest.approx(4, abs=1e-4)
