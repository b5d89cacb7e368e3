"""A checkpoint of any backend on any number of ranks goes on on any other, as if it had stayed where it was.

A seeded share of the pairs here, in three process groups; all of them:
`python -m pytest tests/train/test_universal_resume.py -m long`.
"""

import itertools
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from safetensors import safe_open

from tests.launching import distance, losses, weights
from tests.train.conftest import WriteRecipe
from tests.train.worlds import Life, run_all

BACKENDS = (
    *("multi_gpu", "fsdp2", "fsdp2_offload"),
    *("zero1", "zero2", "zero2_offload", "zero3", "zero3_offload"),
)
STEP, LAST = 8, 12  # the middle of the second epoch
SEED, SHARE = 15, 5


@dataclass(frozen=True)
class Place:
    """A backend and a number of ranks."""

    backend: str
    num_ranks: int

    def __str__(self) -> str:
        return f"{self.backend}x{self.num_ranks}"


SINGLE = Place("single_gpu", 1)
PLACES = (SINGLE, *(Place(name, ranks) for name in BACKENDS for ranks in (1, 2, 3)))
PAIRS = [pair for pair in itertools.product(PLACES, PLACES) if pair[0] != pair[1]]


class Matrix:
    """Writers' checkpoints, and readers that go on from them."""

    def __init__(self, recipe: Path, folder: Path) -> None:
        self.recipe, self.folder, self.runs = recipe, folder, recipe.parent / "runs"

    def words(self, place: Place, name: str, *more: str) -> list[str]:
        return ["--recipe", str(self.recipe), "--backend", place.backend, "--name", name, *more]

    def run(self, lines: list[tuple[Place, list[str]]]) -> None:
        """In one process group for every number of ranks."""
        for ranks in sorted({place.num_ranks for place, _ in lines}):
            run_all(
                [Life(words=words) for place, words in lines if place.num_ranks == ranks], ranks, self.folder
            )

    def check(self, pairs: list[tuple[Place, Place]]) -> None:
        """Every reader's losses and weights are those of the run that was left alone."""
        writers = {writer for writer, _ in pairs}
        self.run([(SINGLE, self.words(SINGLE, "whole"))])
        self.run([(place, self.words(place, str(place))) for place in writers])
        for writer, reader in pairs:
            self._cut(str(writer), f"{writer}-to-{reader}")
        self.run([(to, self.words(to, f"{of}-to-{to}", "--resume")) for of, to in pairs])
        wanted, final = losses(self.runs / "whole"), weights(self.runs / "whole" / "final")
        length = sum(float((tensor.double() ** 2).sum()) for tensor in final.values()) ** 0.5
        for writer, reader in pairs:
            name = f"{writer}-to-{reader}"
            found = losses(self.runs / name)
            assert len(found) == LAST and found == pytest.approx(wanted, abs=1e-5), name
            assert distance(weights(self.runs / name / "final"), final) < 1e-3 * length, name

    def _cut(self, whole: str, name: str) -> None:
        """What is left of a run that was killed after the checkpoint in the middle."""
        shutil.copytree(self.runs / whole, self.runs / name)
        for path in ("final", f"checkpoint-{LAST}"):
            shutil.rmtree(self.runs / name / path)
        for path in ("summary.json", ".owner"):
            (self.runs / name / path).unlink()


@pytest.fixture
def matrix(classifier: WriteRecipe, tmp_path: Path) -> Matrix:
    recipe = classifier(save_steps=4, save_total_limit=2, max_steps=LAST)
    return Matrix(recipe, tmp_path)


@pytest.mark.slow
def test_b047_a_share_of_all_pairs(matrix: Matrix) -> None:
    sampled = random.Random(SEED).sample(PAIRS, SHARE)
    assert {pair[1].num_ranks for pair in sampled} == {1, 2, 3}
    matrix.check(sampled)


@pytest.mark.long
def test_b047_all_pairs(matrix: Matrix) -> None:
    matrix.check(PAIRS)


@pytest.mark.slow
def test_b050_an_adapters_checkpoint_holds_no_base_on_any_backend(
    generator: WriteRecipe, tmp_path: Path
) -> None:
    """And it goes on, bit for bit, where it was written."""
    recipe = generator(save_steps=2, max_steps=4, save_total_limit=2)
    matrix = Matrix(recipe, tmp_path)
    places = [Place(name, 2) for name in ("multi_gpu", "zero2", "zero3", "fsdp2")]
    matrix.run([(place, matrix.words(place, str(place))) for place in places])
    for place in places:
        run = matrix.runs / str(place)
        held = _names(run / "checkpoint-2")
        assert held and all(".lora_" in name for name in held), place
        shutil.copytree(run, matrix.runs / f"{place}-cut")
        for path in ("final", "checkpoint-4"):
            shutil.rmtree(matrix.runs / f"{place}-cut" / path)
        (matrix.runs / f"{place}-cut" / "summary.json").unlink()
        (matrix.runs / f"{place}-cut" / ".owner").unlink()
    matrix.run([(place, matrix.words(place, f"{place}-cut", "--resume")) for place in places])
    for place in places:
        whole, cut = (matrix.runs / name for name in (str(place), f"{place}-cut"))
        assert losses(whole) == losses(cut), place
        assert distance(weights(whole / "final"), weights(cut / "final")) == 0.0, place


def _names(checkpoint: Path) -> set[str]:
    found = set()
    for path in checkpoint.glob("*.safetensors"):
        with safe_open(path, framework="pt") as file:
            found |= set(file.keys())
    return found
