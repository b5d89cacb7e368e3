"""What goes wrong, told to a person: where and what, what would be right, what to type.

Only mistakes that a person can mend live here. A programmer's mistake stays an `assert`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CANNOT_TELL = 3
EXIT_RESUMABLE = 75


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One finding: `where` (file:line and key), `what` is wrong, what is `right`, what to `type`."""

    what: str
    right: str
    type: str
    where: str = ""

    def render(self) -> str:
        """The finding as three lines, the place in front."""
        place = f"{self.where}  " if self.where else ""
        lines = [f"{place}{self.what}", f"  right: {self.right}", f"  type:  {self.type}"]
        return "\n".join(line for line in lines if not line.endswith(":  "))


class LauncherError(Exception):
    """A person's mistake or a machine's limit. Carries one or more `Problem`s and an exit code."""

    exit_code = EXIT_FAILED
    concerns_one_rank = False  # else every rank raises it, and the first one tells

    def __init__(self, problems: Problem | Sequence[Problem]) -> None:
        """Keep the findings; the message is all of them, each in three lines."""
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(problem.render() for problem in self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        """Ranks send errors to one another: by what made them, not by their text."""
        return type(self), (self.problems,), self.__dict__


class RecipeError(LauncherError):
    """The recipe, the command line or a configuration file says something unusable."""

    exit_code = EXIT_USAGE


class UnknownSetting(RecipeError):
    """A name that is not known: a key, a recipe, a backend, a method."""


class BadValue(RecipeError):
    """A known key with a value that it cannot take."""


class Conflict(RecipeError):
    """The same fact was given twice by hand, and differently."""


class HardwareError(LauncherError):
    """This machine cannot do what the recipe asks."""


class PlanError(LauncherError):
    """No plan can be made."""


class DoesNotFit(PlanError):
    """The plan needs more memory, host memory or disk than there is."""


class CannotTell(PlanError):
    """Too little is known to predict."""

    exit_code = EXIT_CANNOT_TELL


class LaunchMismatch(LauncherError):
    """What was started is not what was planned: ranks, backend, precision."""


class DataError(LauncherError):
    """The data cannot be read, or cannot be trained on."""


class TrainError(LauncherError):
    """Training stopped."""


class NonFinite(TrainError):
    """Loss or gradients are not finite."""


class OutOfMemory(TrainError):
    """The device's memory ran out. Often only one rank knows: it speaks for itself."""

    exit_code = EXIT_RESUMABLE
    concerns_one_rank = True


class ResumeMismatch(TrainError):
    """A checkpoint that this run cannot continue from."""


class Interrupted(TrainError):
    """Stopped by a signal; the last whole checkpoint stays usable."""

    exit_code = EXIT_RESUMABLE


class ExportError(LauncherError):
    """A model folder that cannot be written, or does not reload to the same numbers."""
