"""`extends:` chains: inherited leaf by leaf, provenance kept, cycles refused."""

from pathlib import Path
from typing import Any

import pytest

from launcher.errors import RecipeError
from launcher.recipe.load import load_recipe
from launcher.recipe.parents import lineage


def test_a_chain_merges_leaf_by_leaf_and_keeps_each_origin(write: Any) -> None:
    write("training: {seed: 1, learning_rate: 1e-4, warmup: 0.1}\n", name="top.yaml")
    write(name="middle.yaml", whole="extends: top.yaml\ntraining:\n  seed: 2\n")
    path = write(name="leaf.yaml", whole="extends: middle\ntraining:\n  warmup: 0.2\n")
    loaded = load_recipe(str(path))
    training = loaded.recipe.training
    assert (training.seed, training.learning_rate, training.warmup) == (2, 1e-4, 0.2)
    assert str(loaded.origins["training.seed"]) == "parent  middle.yaml:3"
    assert str(loaded.origins["training.learning_rate"]) == "parent  top.yaml:4"
    assert str(loaded.origins["training.warmup"]) == "recipe  leaf.yaml:3"


def test_a_shipped_parent_is_found_by_name_from_anywhere(write: Any) -> None:
    loaded = load_recipe(str(write(whole="extends: quickstart\ntraining: {seed: 7}\n")))
    assert loaded.recipe.task == "classification"
    assert Path(loaded.recipe.data.train_file).is_file()
    assert loaded.origins["task"].kind == "parent"


def test_a_parents_files_are_sought_beside_the_parent(write: Any, tmp_path: Path) -> None:
    write(name="base/job.yaml")
    write(name="base/train.csv", whole="text,label\n")
    path = write(name="mine/job.yaml", whole="extends: ../base/job.yaml\n")
    assert load_recipe(str(path)).recipe.data.train_file == str(tmp_path / "base" / "train.csv")


@pytest.mark.parametrize("length", [1, 2, 5])
def test_cycles_are_refused_with_the_way_round(write: Any, length: int) -> None:
    for number in range(length):
        write(f"extends: r{(number + 1) % length}.yaml\n", name=f"r{number}.yaml")
    with pytest.raises(RecipeError, match="go in a circle") as caught:
        lineage(Path("r0.yaml").resolve())
    (problem,) = caught.value.problems
    assert problem.where == f"r{length - 1}.yaml:4"
    assert problem.what.count("->") == length


@pytest.mark.parametrize("parent", ["nowhere", "nowhere.yaml", "[a, b]", "5"])
def test_a_lost_parent_is_told_with_its_line(write: Any, refuse: Any, parent: str) -> None:
    (problem,) = refuse(write(f"extends: {parent}\n")).problems
    assert problem.where == "job.yaml:4"
    assert problem.type


def test_a_problem_in_a_parent_names_the_parents_line(write: Any, refuse: Any) -> None:
    write("training: {nothing: 1}\n", name="base.yaml")
    (problem,) = refuse(write(whole="extends: base.yaml\n")).problems
    assert problem.where == "base.yaml:4"


def test_an_empty_extends_is_none(write: Any) -> None:
    assert load_recipe(str(write("extends:\n"))).name == "job"
