"""A run's data: made once on a machine, however long it takes, found again by later runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from launcher.errors import DataError, RecipeError
from launcher.recipe.load import load_recipe
from launcher.train.prepared import Prepared, prepare_data
from tests import tiny
from tests.launching import ROOT, environment
from tests.train.conftest import WriteRecipe


def prepared(path: Path, *overrides: str) -> Prepared:
    recipe = load_recipe(str(path), overrides).recipe
    return prepare_data(recipe, say=print, root=path.parent / "cache")


def test_a_second_call_gives_the_same_tokens_without_reading_the_data(classifier: WriteRecipe) -> None:
    path = classifier()
    first, second = prepared(path), prepared(path)
    assert any(line.startswith("tokens made") for line in first.notices)
    assert second.notices[-1].startswith("tokens from the cache")
    assert first.notices[:-1] == second.notices[:-1]
    assert first.store.input_ids.tolist() == second.store.input_ids.tolist()
    assert second.splits.label_names == ("negative", "positive")
    assert second.eval_store is not None and len(second.eval_store) == 23


def test_the_chosen_length_is_the_training_rows_for_both_splits(classifier: WriteRecipe) -> None:
    found = prepared(classifier(), "data.max_length={percentile: 50, cap: 40}")
    assert found.eval_store is not None
    assert found.store.max_length == found.eval_store.max_length < 40
    assert str(found.store.length) in found.notices


def test_b036_a_length_beyond_the_positions_is_refused_a_percentile_is_held(classifier: WriteRecipe) -> None:
    """The tiny model has 66 positions."""
    with pytest.raises(Exception, match="at most 66"):
        prepared(classifier(), "data.max_length=100")
    found = prepared(classifier(), "data.max_length={percentile: 99, cap: 100}")
    assert found.store.max_length <= 66


def test_overlong_rows_are_dropped_from_training_and_never_from_evaluation(classifier: WriteRecipe) -> None:
    found = prepared(classifier(), "data.max_length=16", "data.overflow=drop")
    assert len(found.store) == 59 - found.store.num_truncated < 59
    assert found.eval_store is not None and len(found.eval_store) == 23
    assert any("are left out" in line for line in found.notices)
    assert any("eval.csv" in line and "lose their end" in line for line in found.notices)


def test_data_that_cannot_be_used_leaves_no_entry(classifier: WriteRecipe) -> None:
    path = classifier()
    (path.parent / "train.csv").write_text("text,label\n")
    with pytest.raises(DataError):
        prepared(path, f"data.train_file={path.parent / 'train.csv'}")
    assert not [each for each in (path.parent / "cache" / "tokens").iterdir() if each.is_dir()]


# Two ranks with a group that gives up after `timeout` seconds; tokenising takes longer than that.
RANK = """
import os, sys, time
from datetime import timedelta
from pathlib import Path
sys.path.insert(0, {root!r})
import torch, torch.distributed as dist
from launcher.recipe.load import load_recipe
from launcher.train import prepared as module
from launcher.train.prepared import prepare_data
from launcher.train.world import World

rank, waits_in_collective = int(os.environ["RANK"]), {collective!r}
real = module.tokenise
def slow(*args, **more):
    with open({made!r}, "a") as file: file.write("x")
    time.sleep({work_s} / 2)
    return real(*args, **more)
module.tokenise = slow
Path({made!r} + f".{{rank}}").touch()
while not Path({made!r} + f".{{1 - rank}}").exists(): time.sleep(0.01)  # one may import longer
dist.init_process_group("gloo", timeout=timedelta(seconds={timeout_s}))
world = World(rank=rank, num_ranks=2, device=torch.device("cpu"))
recipe = load_recipe({recipe!r}).recipe
def get():
    return prepare_data(recipe, say=print, local_rank=rank, root=Path({cache!r}))
if waits_in_collective:
    if rank == 0: get()
    world.barrier()
found = world.agreed(get)
sys.stdout.write("rows %d\\n" % len(found.store))  # in one piece: two ranks share it
dist.destroy_process_group()
"""


def two_ranks(path: Path, *, collective: bool) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = path.parent
    program, made = folder / "rank.py", folder / "made"
    program.write_text(
        RANK.format(
            root=str(ROOT),
            collective=collective,
            made=str(made),
            work_s=12,
            timeout_s=8,
            recipe=str(path),
            cache=str(folder / "cache"),
        )
    )
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        str(program),
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=900, check=False
    )
    return done, made


@pytest.mark.slow
def test_b064_tokenising_longer_than_the_groups_timeout_times_nothing_out(classifier: WriteRecipe) -> None:
    done, made = two_ranks(classifier(), collective=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("rows 59") == 2
    assert made.read_text() == "xx"  # training and evaluation rows, by one rank


@pytest.mark.slow
def test_b064_control_waiting_in_a_collective_does_time_out(classifier: WriteRecipe) -> None:
    done, _ = two_ranks(classifier(), collective=True)
    assert done.returncode != 0
    assert "imed out" in done.stderr


def test_virtual_tokens_take_positions_from_the_rows(tmp_path: Path) -> None:
    tiny.write_bert(tmp_path / "bert")  # 66 positions
    tiny.write_csv(tmp_path / "train.csv", 12)
    recipe = tmp_path / "prompted.yaml"
    recipe.write_text(
        f"summary: s\ntask: classification\nmodel: {{model_name_or_path: {tmp_path / 'bert'}}}\n"
        f"data: {{train_file: {tmp_path / 'train.csv'}, max_length: 60}}\n"
        "adapter: {method: prompt, num_virtual_tokens: 10}\n"
    )
    with pytest.raises(RecipeError, match="at most 56"):
        prepare_data(load_recipe(str(recipe)).recipe, say=print, root=tmp_path / "cache")
