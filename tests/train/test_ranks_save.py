"""Ranks that save together: one is asked to stop, one's disk fails, all write in the background.

On ZeRO-3 too: `python -m pytest tests/train/test_ranks_save.py -m long`.
"""

from pathlib import Path

import pytest

from launcher.train.checkpoint_files import newest_whole, steps_saved
from tests.train.conftest import WriteRecipe
from tests.train.test_resume import same_run
from tests.train.worlds import Life, run_all


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["multi_gpu", pytest.param("zero3", marks=pytest.mark.long)])
def test_two_ranks_agree_on_when_they_stop_and_on_what_failed(
    backend: str, classifier: WriteRecipe, tmp_path: Path
) -> None:
    recipe = classifier(model="bert-dropout", save_steps=4, logging_steps=3, max_steps=12, save_total_limit=9)
    runs = recipe.parent / "runs"

    def words(name: str, *more: str) -> list[str]:
        return ["--recipe", str(recipe), "--backend", backend, "--name", name, *more]

    shard = "checkpoint-{}/state-0001-0000".format
    said = run_all(
        [
            Life(words=words("whole")),
            Life(words=words("stopped"), events=((1, shard(4), "stop"),), code=75),
            Life(words=words("stopped", "--resume")),
            Life(words=words("behind", "async_save=true")),
            Life(words=words("behind-stopped", "async_save=true"), events=((1, shard(4), "stop"),), code=75),
            Life(words=words("behind-stopped", "--resume")),
            Life(words=words("limited"), events=((1, shard(4), "limit"), (1, shard(8), "free"))),
        ],
        2,
        tmp_path,
    )
    for name in ("stopped", "behind", "behind-stopped", "limited"):
        same_run(runs / "whole", runs / name)
    assert "asked to stop: saving step" in said
    assert "checkpoint-4 could not be saved: File too large" in said and "(rank 1)" in said
    assert steps_saved(runs / "limited") == [8, 12]
    assert newest_whole(runs / "stopped")[0] == runs / "stopped" / "checkpoint-12"
