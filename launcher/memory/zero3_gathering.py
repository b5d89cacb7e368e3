"""What DeepSpeed's stage 3 has gathered at each moment of a step: its coordinator, run on a model's sizes.

Read from deepspeed 0.19.8, partitioned_param_coordinator.py, `fetch_sub_module` and `release_sub_module`:
from the second step on, when it knows the order of modules,

* whoever is visited, a container or an activation too, fetches ahead up to a prefetch bucket of elements
  (one parameter more may cross it), as long as fewer than `stage3_max_live_parameters` are there; so all
  of a small model is on its way after a few visits;
* parameters that are fetched together come in one flat buffer, which the first of them to be used copies
  out for all (`AllGatherCoalescedHandle.wait`); the buffer goes when the last of them has been used;
* a visited module's parameters are let go, unless they come again within `stage3_max_reuse_distance`
  elements, or the fetching ahead has already passed over that use (`__params_to_release`).

Parameters up to `stage3_param_persistence_threshold` elements are never divided between steps: they are not
followed here.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

EMBEDDINGS, HEAD = -1, -2
# Containers around the blocks (the loss, an adapter's wrapper, the model) that are visited first.
_CONTAINERS = 3


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Elements: of a prefetch bucket, at most on the card, of a reuse that is waited for."""

    prefetch: int
    live: int
    reuse: int


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Elements of the parameters that are divided: the embeddings', one block's by sublayer, the head's.

    `is_tied`: the head uses the first embedding. `embeddings_back`: how many are visited on the way back.
    """

    embeddings: tuple[int, ...]
    attention: tuple[int, ...]
    mlp: tuple[int, ...]
    head: tuple[int, ...]
    num_layers: int
    is_tied: bool
    recomputes: bool
    embeddings_back: int


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Elements on the card beside a rank's pieces, whole weights and flat buffers; the most of each moment.

    `begun`, `forward` and `backward` by block, from the lowest; `begun`: by the end of its attention,
    `forward`: from there on. `left`: after a forward pass that no backward pass follows; `on_the_way`: of
    it, the largest flat buffer not copied out yet.
    """

    embeddings: int
    begun: tuple[int, ...]
    forward: tuple[int, ...]
    at_loss: int
    backward: tuple[int, ...]
    end: int
    left: int
    on_the_way: int


@dataclass(kw_only=True)
class _Flight:
    """Parameters fetched together: elements, who has not been used yet, whether it is copied out."""

    params: list[int]
    elements: int
    waiting: int
    is_copied: bool = False


Visit = tuple[int, int | None, bool]  # place (a block, EMBEDDINGS, HEAD), parameter, in the second sublayer


@dataclass(kw_only=True)
class _Coordinator:
    """The live elements of one step, visit by visit."""

    visits: list[Visit]
    sizes: list[int]
    limits: Limits
    live: int = 0
    counted: int = 0
    flights: dict[int, _Flight] = field(default_factory=dict)
    here: set[int] = field(default_factory=set)
    passed: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.queue = deque((step, p) for step, (_, p, _) in enumerate(self.visits) if p is not None)
        self.traversed = [0]
        self.uses: dict[int, list[int]] = {}
        for step, (_, param, _) in enumerate(self.visits):
            self.traversed.append(self.traversed[-1] + (0 if param is None else self.sizes[param]))
            if param is not None:
                self.uses.setdefault(param, []).append(step)

    def visit(self, step: int) -> int:
        """Fetch, fetch ahead, and let go; the most elements alive meanwhile."""
        param = self.visits[step][1]
        most = self.live
        if param is not None:
            most = self._need(param)
            if self.passed.get(param, -1) < step:
                self._pop()
        self._fetch_ahead()
        most = max(most, self.live)
        if param is not None and not self._is_kept(param, step + 1):
            self.here.discard(param)
            self.live -= self.sizes[param]
            self.counted -= self.sizes[param]
        return most

    def _need(self, param: int) -> int:
        """Have one parameter whole; the most elements alive while its flat buffer is copied out."""
        if flight := self.flights.pop(param, None):
            return self._use(flight)
        if param not in self.here:
            self.here.add(param)
            self.live += self.sizes[param]
            self.counted += self.sizes[param]
        return self.live

    def _use(self, flight: _Flight) -> int:
        if not flight.is_copied:
            flight.is_copied = True
            self.here.update(flight.params)
            self.live += flight.elements
        most = self.live
        flight.waiting -= 1
        if not flight.waiting:
            self.live -= flight.elements
        return most

    def _pop(self) -> tuple[int, int]:
        step, param = self.queue.popleft()
        self.passed[param] = max(self.passed.get(param, -1), step)
        return step, param

    def _fetch_ahead(self) -> None:
        room = min(self.limits.live - self.counted, self.limits.prefetch)
        wanted: list[int] = []
        elements = 0
        while self.queue and elements < room:
            _, param = self._pop()
            if param not in self.here and param not in self.flights and param not in wanted:
                wanted.append(param)
                elements += self.sizes[param]
        if wanted:
            self._send(wanted, elements)

    def _send(self, wanted: list[int], elements: int) -> None:
        """One parameter is received in its own place; several in a flat buffer."""
        flight = _Flight(params=wanted, elements=elements, waiting=len(wanted))
        if len(wanted) == 1:
            flight.is_copied = True
            self.here.update(wanted)
            flight.elements = 0
        self.flights |= dict.fromkeys(wanted, flight)
        self.live += elements
        self.counted += elements

    def _is_kept(self, param: int, step: int) -> bool:
        if self.passed.get(param, -1) > step:
            return True
        following = next((use for use in self.uses[param] if use >= step), None)
        if following is None:
            return False
        return self.traversed[following] - self.traversed[step] < self.limits.reuse


def _numbered(model: Followed) -> tuple[list[int], list[list[int]], list[list[list[int]]], list[int]]:
    """Sizes by number; numbers of embeddings (one a module), blocks by sublayer, head."""
    sizes: list[int] = []

    def take(found: tuple[int, ...]) -> list[int]:
        sizes.extend(found)
        return [*range(len(sizes) - len(found), len(sizes))]

    embeddings = [[each] for each in take(model.embeddings)]
    blocks = [[take(model.attention), take(model.mlp)] for _ in range(model.num_layers)]
    head = [embeddings[0][0]] if model.is_tied and embeddings else take(model.head)
    return sizes, embeddings, blocks, head


def _through(block: list[list[int]], place: int, *, is_back: bool) -> Iterator[Visit]:
    """A block's visits: itself, each sublayer and its norm, the linear layers, an activation in between."""
    yield place, None, False
    for number in (1, 0) if is_back else (0, 1):
        sublayer, is_second = block[number], number == 1
        yield place, None, is_second
        yield place, None, is_second
        for index, param in enumerate(reversed(sublayer) if is_back else sublayer):
            if index == 1:
                yield place, None, is_second
            yield place, param, is_second


def _visits(model: Followed) -> tuple[list[int], list[Visit], int]:
    """Sizes, every visit of a step in order, and where its backward pass begins."""
    sizes, embeddings, blocks, head = _numbered(model)
    found: list[Visit] = [(EMBEDDINGS, None, False)] * _CONTAINERS
    found += [(EMBEDDINGS, param, False) for (param,) in embeddings]
    found += [(EMBEDDINGS, None, False)] * 2
    for index, block in enumerate(blocks):
        found += _through(block, index, is_back=False)
    found += [(HEAD, None, False), *((HEAD, param, False) for param in head)]
    begin = len(found)
    found += [*((HEAD, param, False) for param in reversed(head)), (HEAD, None, False)]
    for index in reversed(range(len(blocks))):
        if model.recomputes:
            found += _through(blocks[index], index, is_back=False)
        found += _through(blocks[index], index, is_back=True)
    found += [(EMBEDDINGS, param, False) for (param,) in reversed(embeddings[: model.embeddings_back])]
    return sizes, found, begin


@lru_cache(maxsize=256)
def gathered(model: Followed, limits: Limits) -> Gathered:
    """One training step's moments. Nothing in it depends on a batch, so that plans share it."""
    sizes, visits, begin = _visits(model)
    run = _Coordinator(visits=visits, sizes=sizes, limits=limits)
    begun, forward, backward = ([0] * model.num_layers for _ in range(3))
    ends = {EMBEDDINGS: [0, 0], HEAD: [0, 0]}
    left = on_the_way = 0
    for step, (place, _, is_second) in enumerate(visits):
        most = run.visit(step)
        is_back = step >= begin
        onward = forward if is_second else begun
        side = (backward if is_back else onward) if place >= 0 else ends[place]
        where = place if place >= 0 else int(is_back)
        side[where] = max(side[where], most)
        if step == begin - 1:
            left = run.live
            waiting = [each.elements for each in run.flights.values() if not each.is_copied]
            on_the_way = max(waiting, default=0)
    return Gathered(
        embeddings=ends[EMBEDDINGS][0],
        begun=tuple(begun),
        forward=tuple(forward),
        at_loss=left,
        backward=tuple(backward),
        end=max(ends[EMBEDDINGS][1], run.live),
        left=left,
        on_the_way=on_the_way,
    )
