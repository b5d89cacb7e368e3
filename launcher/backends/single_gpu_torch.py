"""Connects one process: the module as it is."""

from launcher.backends.plain_torch import PlainStrategy
from launcher.backends.strategy_torch import Parts, Strategy, mismatch


class SingleStrategy(PlainStrategy):
    """One process, no wrapper, no communication."""

    def check(self) -> str:
        """One rank, nothing wrapped around the module."""
        if self.parts.settings.num_ranks != 1 or self.module is not self.parts.module:
            raise mismatch(f"{self.parts.settings.num_ranks} ranks on single_gpu", "one process")
        return f"single_gpu: one process on {self.parts.device}"


def connect(parts: Parts) -> Strategy:
    """The strategy for one process."""
    return SingleStrategy(parts)
