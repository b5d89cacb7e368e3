"""Levers: what is tried to make a recipe fit, and what is never proposed."""

from itertools import product

import pytest

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, cell
from launcher.plan.levers import BACKEND, CHECKPOINTING, FOUR_BITS, LENGTH, METHOD, OPTIMIZER, turns, typed
from launcher.plan.turned import turned
from launcher.recipe.rules import problems_of
from launcher.recipe.schema import Recipe
from tests.plan.cards import BERT, LLAMA, recipe, shape


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_nothing_that_the_matrix_refuses_is_proposed(ranks: int, method: str) -> None:
    wanted = recipe(adapter=method, backend="single_gpu" if ranks == 1 else "multi_gpu")
    found = list(turns(wanted, shape(LLAMA), ranks, far=True))
    assert found
    for turn in found:
        chosen = turn.changes.get(METHOD, method)
        backend = turn.changes.get(BACKEND, wanted.backend.name)
        packed = bool(turn.changes.get(FOUR_BITS))
        assert not isinstance(cell(chosen, backend, quantised=packed), Refused), turn.changes


def _asked(method: str, backend: str, packed: str, ranks: int, recomputes: bool) -> Recipe:
    """What a person might type; axes that no rule looks at are left out by giving their values."""
    found = recipe(
        adapter=method, backend=backend, loss_chunk_bytes=2**28, activation_checkpointing=recomputes
    )
    model = found.model.model_copy(update={packed: True} if packed else {})
    hardware = found.hardware.model_copy(update={"gpus": ranks})
    return found.model_copy(update={"model": model, "hardware": hardware})


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("packed", ["", "load_in_4bit", "load_in_8bit"])
def test_no_method_backend_or_packing_leads_to_a_plan_that_is_refused(ranks: int, packed: str) -> None:
    """The whole product: whatever is asked, each proposal passes every rule that a start applies."""
    seen = set()
    for method, backend, recomputes in product(METHODS.names(), BACKENDS.names(), (False, True)):
        wanted = _asked(method, backend, packed, ranks, recomputes)
        for turn in turns(wanted, shape(LLAMA), ranks, far=True):
            key = (method, backend, recomputes, *(turn.changes.get(each) for each in _LOOKED_AT))
            if turn.changes and key not in seen:
                seen.add(key)
                final = turned(wanted, turn.changes)
                refused = problems_of(final, {})
                inherited = {problem.what for problem in problems_of(wanted, {})}
                assert not [each.what for each in refused if each.what not in inherited], turn.changes
                allowed = cell(final.adapter.method, final.backend.name, quantised=final.model.is_quantised)
                assert not isinstance(allowed, Refused), turn.changes
    assert len(seen) > 100


_LOOKED_AT = (BACKEND, CHECKPOINTING, FOUR_BITS, METHOD, OPTIMIZER)


def test_b007_packed_weights_are_offered_on_zero2_and_never_on_zero3() -> None:
    found = [turn.changes for turn in turns(recipe(backend="multi_gpu"), shape(LLAMA), 4)]
    packed = {changes.get(BACKEND, "multi_gpu") for changes in found if changes.get(FOUR_BITS)}
    assert {"multi_gpu", "zero1", "zero2"} <= packed
    assert not {name for name in packed if BACKENDS.get(name).sharding.parameters}


def test_the_recipe_itself_comes_first_and_is_nearest() -> None:
    found = list(turns(recipe(), shape(LLAMA), 1))
    assert found[0].changes == {} and found[0].distance == 0
    assert all(turn.distance > 0 for turn in found[1:])


def test_keeping_the_numbers_is_nearer_than_packing_weights() -> None:
    found = {tuple(turn.changes): turn.distance for turn in turns(recipe(), shape(LLAMA), 1)}
    assert found[(CHECKPOINTING,)] < found[(FOUR_BITS,)]


def test_trained_weights_are_never_packed() -> None:
    assert not any(FOUR_BITS in turn.changes for turn in turns(recipe(adapter="full"), shape(LLAMA), 1))


def test_a_prefix_keeps_its_cache() -> None:
    found = turns(recipe(adapter="prefix"), shape(LLAMA), 1)
    assert not any(turn.changes.get(CHECKPOINTING) for turn in found)


def test_shorter_rows_and_lora_only_where_asked() -> None:
    near = list(turns(recipe(adapter="full"), shape(LLAMA), 1))
    far = list(turns(recipe(adapter="full"), shape(LLAMA), 1, far=True))
    assert not any({LENGTH, METHOD} & turn.changes.keys() for turn in near)
    assert {256, 128} == {turn.changes[LENGTH] for turn in far if LENGTH in turn.changes}
    assert any(turn.changes.get(METHOD) == "lora" for turn in far)


def test_a_cpu_has_nothing_to_leave_for_host_memory() -> None:
    found = turns(recipe(model=BERT, adapter="full"), shape(BERT, "classification"), 1, on_card=False)
    assert {turn.changes.get(BACKEND) for turn in found} == {None}


def test_changes_read_as_they_are_typed() -> None:
    changes = {BACKEND: "zero2", CHECKPOINTING: True, LENGTH: 256}
    assert typed(changes) == "--backend zero2 activation_checkpointing=true max_length=256"
