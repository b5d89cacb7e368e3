"""The arithmetic behind the benchmarks: a bound that is too good would make every claim worthless."""

import importlib.util
import json
import math
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def paired(root: Path) -> ModuleType:
    return load(root / "benchmarks/paired.py")


@pytest.fixture(scope="module")
def backends(root: Path) -> ModuleType:
    return load(root / "benchmarks/backends.py")


def test_the_order_is_turned_round_in_every_other_pair(paired: ModuleType) -> None:
    calls: list[str] = []

    def measure(name: str, value: float) -> float:
        calls.append(name)
        return value

    pairs = paired.alternate(lambda: measure("a", 1.0), lambda: measure("b", 2.0), num_pairs=3, num_warmups=1)
    assert pairs == [(1.0, 2.0)] * 3
    assert "".join(calls) == "ab" + "abbaab"


def test_equal_ratios_have_no_spread(paired: ModuleType) -> None:
    found = paired.ratio([(2.0, 4.0), (1.0, 2.0), (3.0, 6.0)])
    assert (found.mean, found.lower_95, found.upper_95, found.median) == pytest.approx((0.5,) * 4)


def test_the_bounds_are_those_of_students_t(paired: ModuleType) -> None:
    """Logarithms -1, 0, 1: mean 0, deviation 1, t(0.95, 2) = 2.9200."""
    found = paired.ratio([(math.exp(value), 1.0) for value in (-1.0, 0.0, 1.0)])
    assert math.log(found.upper_95) == pytest.approx(2.91999 / math.sqrt(3), abs=1e-4)
    assert math.log(found.lower_95) == pytest.approx(-2.91999 / math.sqrt(3), abs=1e-4)


def test_the_lower_bound_is_wrong_about_one_time_in_twenty(paired: ModuleType) -> None:
    draw = random.Random(0)
    wrong = 0
    for _ in range(600):
        pairs = [(math.exp(draw.gauss(0.0, 0.1)), 1.0) for _ in range(8)]
        wrong += paired.ratio(pairs).lower_95 > 1.0
    assert 12 <= wrong <= 50


def test_results_carry_hardware_versions_and_date(
    paired: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired, "RESULTS", tmp_path)
    path = paired.save("speed", {"ratio": paired.ratio([(1.0, 2.0), (1.1, 2.0)])})
    row = json.loads(path.read_text())
    assert row["machine"]["versions"]["torch"] != "absent"
    assert row["machine"]["cores"] >= 1
    assert row["date"]
    assert row["figures"]["ratio"]["num_pairs"] == 2


def test_every_kept_result_says_where_it_comes_from(root: Path) -> None:
    for path in (root / "benchmarks/results").glob("*.json"):
        assert {"benchmark", "date", "machine", "figures"} <= json.loads(path.read_text()).keys(), path


def test_two_loops_in_one_process_take_turns_like_a_pair(backends: ModuleType) -> None:
    """Both loops take as many blocks, and whichever goes first is turned round in every other pair."""
    order = ""
    for taken in range(1, 10):
        order += "a" + "b" * backends.their_turns(taken)
    assert order == "ab" + "abba" * 4


def test_the_hand_written_loop_pads_as_the_product_does(backends: ModuleType) -> None:
    """Else the two would not do the same work."""
    import numpy as np

    from launcher.data.batches_torch import collate
    from launcher.data.tokens import TokenStore

    ids = np.array([5, 6, 7, 8, 9, 10], dtype=np.int32)
    trained = np.array([False, True, True, False, False, True])
    store = TokenStore(
        task="causal_lm",
        input_ids=ids,
        offsets=np.array([0, 2, 6]),
        labels=None,
        trained=trained,
        num_targets=np.array([1, 2]),
        max_length=8,
    )
    ours = collate(store, np.array([0, 1]), pad_token_id=0)
    theirs = backends.collate(backends.token_rows(store))
    assert ours.keys() == theirs.keys()
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_every_setting_of_the_methods_side_by_side_is_a_recipe(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from launcher.recipe.load import load_recipe

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # else the benchmark sets it, for good
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    methods = load(root / "benchmarks/methods.py")
    for name, case in methods.CASES.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(case.recipe.format(shared=tmp_path, folder=tmp_path, rows=case.rows))
        cells = methods.cells(case, (1, 2))
        assert len({cell.folder for cell in cells}) == len(cells) == 2 * 8
        for cell in cells:
            recipe = load_recipe(str(path), cell.overrides).recipe
            assert recipe.adapter.method in cell.label and str(recipe.training.seed) == str(cell.seed)
        tables = [methods.settings(table, case.rates) for table in methods.TABLES]
        assert [len(table) for table in tables] == [5, 3, 2]


def test_a_block_that_is_not_the_same_work_is_not_measured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    trl_sft = load(root / "benchmarks/trl_sft.py")
    block = {"wall": 1.0, "cpu": 1.0}

    def apart(difference: float) -> None:
        ends = [
            {"losses": [2.0, 1.0 + shift], "peak": 5, "training_peak": 4, "start_peak": 3}
            for shift in (0.0, difference)
        ]
        monkeypatch.setattr(trl_sft, "round_of", lambda *_, **__: ([(block, block)] * 2, ends))

    arguments = trl_sft.argparse.Namespace(pairs=4, precision="fp32", steps=2)
    apart(0.0)
    found = trl_sft.measure(Path("nowhere"), arguments)
    assert found["ours_over_trl"].mean == 1.0 and found["memory_ratio"] == 1.0
    apart(0.1)
    with pytest.raises(RuntimeError, match="not the same work"):
        trl_sft.measure(Path("nowhere"), arguments)
