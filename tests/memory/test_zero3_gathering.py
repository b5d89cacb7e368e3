"""What stage 3 has gathered: whole models that are small, a bounded part of large ones, each once."""

from dataclasses import replace

import pytest

from launcher.memory.zero3_gathering import Followed, Gathered, Limits, gathered

SMALL = Followed(
    embeddings=(1000,),
    attention=(100, 100, 100, 100),
    mlp=(200, 200),
    head=(50,),
    num_layers=4,
    is_tied=False,
    recomputes=False,
    embeddings_back=1,
)
WHOLE = 1000 + 4 * 800 + 50
ROOMY = Limits(prefetch=10**6, live=10**9, reuse=10**9)


def everything(found: Gathered) -> list[int]:
    return [
        *(found.embeddings, found.at_loss, found.end, found.left),
        *(*found.begun, *found.forward, *found.backward),
    ]


def test_a_small_model_is_whole_when_its_loss_is_there() -> None:
    found = gathered(SMALL, ROOMY)
    assert found.at_loss == found.left == WHOLE
    assert found.on_the_way == 0


def test_what_came_in_one_buffer_stands_twice_until_the_last_of_it_is_used() -> None:
    found = gathered(SMALL, ROOMY)
    assert found.embeddings == found.forward[-1] == 2 * WHOLE
    apart = gathered(SMALL, replace(ROOMY, prefetch=0))
    assert apart.forward == tuple(1000 + 800 * (index + 1) for index in range(4))


def test_the_way_back_lets_blocks_go_one_by_one() -> None:
    back = gathered(SMALL, replace(ROOMY, prefetch=0)).backward
    assert back == tuple(1000 + 800 * (index + 1) for index in range(4))


def test_without_reuse_nothing_waits() -> None:
    found = gathered(SMALL, Limits(prefetch=0, live=10**9, reuse=0))
    assert found.left == 0
    assert found.forward == (200,) * 4
    assert found.embeddings == 1000


def test_frozen_embeddings_are_let_go_after_their_only_use() -> None:
    frozen = gathered(replace(SMALL, embeddings_back=0), replace(ROOMY, prefetch=0))
    assert frozen.left == WHOLE - 1000
    tied = gathered(replace(SMALL, embeddings_back=0, head=(), is_tied=True), replace(ROOMY, prefetch=0))
    assert tied.left == WHOLE - 50


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.parametrize("live", [1000, 2500])
def test_a_deep_model_stays_below_its_limit_and_one_fetch_and_its_buffers(
    live: int, recomputes: bool
) -> None:
    deep = replace(SMALL, num_layers=40, recomputes=recomputes)
    found = gathered(deep, Limits(prefetch=500, live=live, reuse=live))
    assert 0 < max(everything(found)) <= 2 * (live + 500 + 1000)


def test_more_room_never_holds_less_at_the_loss() -> None:
    deep = replace(SMALL, num_layers=40)
    held = [gathered(deep, Limits(prefetch=500, live=each, reuse=each)).left for each in (500, 5000, 500_000)]
    assert held == sorted(held)
    assert held[-1] == 1000 + 40 * 800 + 50
