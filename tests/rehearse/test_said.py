"""What a run says is read back right, a cut-off log too."""

import json
from pathlib import Path

from launcher.rehearse import said

_TEXT = """precision fp16: asked for
zero2: DeepSpeedEngine over 2 ranks on cpu
sharded: a.weight (8, 4) is rank 0 (16,), rank 1 (16,)
trains 10 of 100 parameters for 12 steps into /w/runs/job
resumed from /w/runs/job/checkpoint-4 at step 4
precision fp16: linear layers compute in float16
"""


def test_facts_of_a_run() -> None:
    assert said.backend(_TEXT, "zero2_offload") == "DeepSpeedEngine over 2 ranks on cpu"
    assert said.sharding(_TEXT) == "a.weight (8, 4) is rank 0 (16,), rank 1 (16,)"
    assert said.precision(_TEXT) == "fp16: linear layers compute in float16"
    assert said.resumed_step(_TEXT) == 4
    assert said.part_reached(_TEXT) == "while training"


def test_a_run_that_stopped_early_has_said_nothing() -> None:
    text = "zero2: not yet\nlauncher run: failed\n"
    assert (said.backend(text, "zero2"), said.precision(text), said.resumed_step(text)) == ("", "", None)
    assert said.part_reached(text).startswith("while building")


def test_message_is_what_is_framed_or_the_end() -> None:
    rule = "=" * 78
    assert said.message(f"noise\n{rule}\nwhat is wrong\n  right: this\n{rule}\nTraceback\n") == (
        "what is wrong\n  right: this"
    )
    assert said.message("\n".join(map(str, range(100)))).splitlines()[-1] == "99"


def test_log_that_a_kill_cut_short(tmp_path: Path) -> None:
    lines = [
        json.dumps({"step": 1, "loss": 2.0}),
        json.dumps({"step": 1, "eval_loss": 2.0}),
        '{"step": 2, "lo',
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines))
    assert said.steps_logged(tmp_path) == {1: {"step": 1, "loss": 2.0}}
    assert said.steps_logged(tmp_path / "nowhere") == {}


def test_losses_that_are_no_numbers() -> None:
    assert said.all_finite({1: {"loss": 2.0}})
    assert not said.all_finite({1: {"loss": 2.0}, 2: {"loss": None}})
    assert not said.all_finite({})
