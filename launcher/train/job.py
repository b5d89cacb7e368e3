"""Everything a run is made of, built once by setup and read by the loop and its callbacks."""

import sys
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
from launcher.train.state import Progress
from launcher.train.world import World


@dataclass(kw_only=True)
class Job:
    """One rank's view of a run."""

    recipe: Recipe
    plan: Plan
    folder: Path
    world: World
    module: TrainModule
    strategy: Strategy
    tokenizer: Any
    label_names: tuple[str, ...]
    layout: str
    store: TokenStore
    eval_store: TokenStore | None
    order: RowOrder
    total_steps: int
    num_trained: int
    num_parameters: int
    warmup: int
    metrics: MetricsLog
    measure: MemoryWatch
    progress: Progress = field(default_factory=Progress)

    def rate_factor(self, update: int) -> float:
        """What the highest learning rate is multiplied by at that update."""
        name = self.recipe.training.lr_scheduler_type
        return rate_factor(name, update, warmup=self.warmup, total=self.total_steps)

    def say(self, text: str) -> None:
        """A line for the person beside the progress bar, from the first rank only."""
        if self.world.is_first:
            tqdm.write(text, file=sys.stderr)
