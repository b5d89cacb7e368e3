"""Planning by trace: the estimate is checked, and an unknown architecture planned without one."""

import json
from pathlib import Path

import pytest

from launcher.cli.main import main
from launcher.hardware.catalog import get
from launcher.plan.traced import plan_by_trace
from launcher.recipe.load import load_recipe

# A small StableLM, of which no closed form here knows.
UNKNOWN = {
    "model_type": "stablelm",
    "num_hidden_layers": 8,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 128,
    "vocab_size": 512,
    "pad_token_id": 0,
    "architectures": ["StableLmForCausalLM"],
}


@pytest.fixture
def unknown(tmp_path: Path) -> Path:
    """A recipe whose model has only a configuration, of an architecture without a closed form."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(UNKNOWN), encoding="utf-8")
    path = tmp_path / "job.yaml"
    path.write_text(
        f"""task: causal_lm
model: {{model_name_or_path: {tmp_path / "model"}}}
data: {{train_file: rows.jsonl, max_length: 64}}
training: {{global_batch_size: 4}}
hardware: {{device: cuda, gpu: rtx3090}}
""",
        encoding="utf-8",
    )
    return path


def test_an_unknown_architecture_is_told_by_exit_code_3_and_names_the_trace(
    unknown: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(unknown)]) == 3
    said = capsys.readouterr().err
    assert "stablelm" in said and "--trace" in said


@pytest.mark.slow
def test_an_unknown_architecture_is_planned_by_trace(unknown: Path) -> None:
    answer = plan_by_trace(load_recipe(str(unknown)), get("rtx3090"))
    assert answer.verdict.fits and answer.breakdown.method == "trace"
    assert answer.verdict.needed_bytes > answer.breakdown.peak_bytes > 0
    assert {"forward", "backward", "optimizer"} <= {phase.name for phase in answer.breakdown.phases}
