"""How a rehearsal gets its processes: each with a start of its own, or forked from this one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from launcher.rehearse.forked import Forked
from launcher.rehearse.started import Started, command


class Running(Protocol):
    """Processes at work; leaving the `with` block leaves nothing of them behind."""

    def __enter__(self) -> Self:
        """Itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever is left."""
        ...

    @property
    def text(self) -> str:
        """All that they have said."""
        ...

    def wait(self) -> int:
        """Their exit code."""
        ...

    def wait_until(self, holds: Callable[[], bool]) -> int | None:
        """None as soon as the condition holds, their exit code where they end before."""
        ...

    def hold_ranks(self) -> None:
        """Every rank stands still from here on."""
        ...

    def let_ranks_go(self) -> None:
        """They go on where they were held."""
        ...

    def kill_ranks(self) -> list[int]:
        """SIGKILL to every rank at once."""
        ...


class Processes(Protocol):
    """Starts a run's ranks, and the process that reloads an export."""

    def run(self, file: Path, backend: str, num_ranks: int, words: Sequence[str], log: Path) -> Running:
        """The recipe file on that many ranks."""
        ...

    def reload(self, words: Sequence[str], log: Path) -> Running:
        """The exported folder's logits, written by a process that sees it alone."""
        ...


class Own:
    """The command that a person types: launcher, starter, ranks."""

    def run(self, file: Path, backend: str, num_ranks: int, words: Sequence[str], log: Path) -> Running:
        """`launcher run FILE --backend ...`."""
        options = ["--backend", backend, "--gpus", str(num_ranks)]
        return Started(command(["run", str(file), *options, *words]), log)

    def reload(self, words: Sequence[str], log: Path) -> Running:
        """A Python of its own."""
        return Started(["-m", "launcher.rehearse.reload_torch", *words], log)


class Copies:
    """Forks of this process; the starter is left out."""

    def run(self, file: Path, backend: str, num_ranks: int, words: Sequence[str], log: Path) -> Running:
        """The ranks' own work, as run.py does it."""
        arguments = ["--recipe", str(file), "--backend", backend, *words]
        return Forked([lambda: _rank(arguments)] * num_ranks, log)

    def reload(self, words: Sequence[str], log: Path) -> Running:
        """One fork that reads the export."""
        return Forked([lambda: _reload(words)], log)


def _rank(arguments: Sequence[str]) -> int:
    from launcher.process.rank_process import run_as_rank

    return run_as_rank(arguments)


def _reload(words: Sequence[str]) -> int:
    from launcher.rehearse.reload_torch import main

    main(*words)
    return 0
