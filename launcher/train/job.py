"""Everything a run is made of, built once by setup and read by the loop and its callbacks."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from launcher.backends.strategy_torch import Strategy
from launcher.data.order import RowOrder
from launcher.data.tokens import TokenStore
from launcher.facts import Plan
from launcher.optim.schedule import rate_factor
from launcher.recipe.schema import Recipe
from launcher.step.module import TrainModule
from launcher.train.memory_watch import MemoryWatch
from launcher.train.metrics_log import MetricsLog
from launcher.train.state import Progress, UnloggedLoss
from launcher.train.stop import Stop
from launcher.train.world import World


@dataclass(kw_only=True)
class Job:
    """One rank's view of a run.

    `openings`: the step at which each of the model's parameters begins to train, empty where nothing is
    frozen, `num_opened` their elements, early and late; `build` makes module and strategy anew for what is
    open after so many steps. `shapes`: of every parameter under its name in `module`, before a backend
    divides it.
    """

    recipe: Recipe
    plan: Plan
    folder: Path
    world: World
    tokenizer: Any
    label_names: tuple[str, ...]
    layout: str
    store: TokenStore
    eval_store: TokenStore | None
    order: RowOrder
    total_steps: int
    warmup: int
    metrics: MetricsLog
    measure: MemoryWatch
    progress: Progress = field(default_factory=Progress)
    module: TrainModule = field(init=False)
    strategy: Strategy = field(init=False)
    num_trained: int = 0
    num_opened: int = 0
    num_parameters: int = 0
    openings: dict[str, int] = field(default_factory=dict)
    build: Callable[["Job", int], None] | None = None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stop: Stop = field(default_factory=Stop)
    unlogged: UnloggedLoss = field(init=False)

    def __post_init__(self) -> None:
        """The device is the world's."""
        self.unlogged = UnloggedLoss(self.world.device)

    @property
    def starts(self) -> list[int]:
        """The steps, after the first, at which more of the model opens."""
        return sorted(set(self.openings.values()) - {0})

    def note_phases(self) -> None:
        """Note after how many updates each phase that has begun by now began."""
        for start in [0, *self.starts] if self.openings else []:
            if start <= self.progress.step:
                self.progress.phase_updates.setdefault(str(start), self.progress.moment_updates)

    def just_opened(self) -> set[str]:
        """What opens at this very step, by its name in `module`: this step's checkpoint does not hold it."""
        step = self.progress.step
        return {f"model.{name}" for name, start in self.openings.items() if start == step > 0}

    @property
    def segment_end(self) -> int:
        """The last step before more opens; the last of all where nothing more does."""
        return next((start for start in self.starts if start > self.progress.step), self.total_steps)

    def rate_factor(self, update: int) -> float:
        """What the highest learning rate is multiplied by at that update."""
        name = self.recipe.training.lr_scheduler_type
        return rate_factor(name, update, warmup=self.warmup, total=self.total_steps)

    def say(self, text: str) -> None:
        """A line for the person beside the progress bar, from the first rank only."""
        if self.world.is_first:
            tqdm.write(text, file=sys.stderr)
