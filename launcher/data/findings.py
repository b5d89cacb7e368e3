"""What is wrong with a file, gathered: the first twenty findings, then how many there are."""

from launcher.errors import DataError, Problem

MOST_SHOWN = 20
_MOST_CHARACTERS = 80


def excerpt(value: object) -> str:
    """A value as it stands in the file, in at most 80 characters."""
    text = value if isinstance(value, str) else repr(value)
    text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."


class Findings:
    """Problems of one file. Only the first are kept, all are counted."""

    def __init__(self, path: object) -> None:
        """`path` is the file that the total names."""
        self.path = path
        self.num_found = 0
        self.shown: list[Problem] = []

    def add(self, problem: Problem) -> None:
        """Count one more."""
        self.num_found += 1
        if len(self.shown) < MOST_SHOWN:
            self.shown.append(problem)

    def raise_any(self) -> None:
        """Raise DataError if there was one."""
        if not self.num_found:
            return
        rest = self.num_found - len(self.shown)
        total = Problem(
            where=str(self.path),
            what=f"{self.num_found:,} problems in all, the first {len(self.shown)} are above",
            right="none",
            type=f"the file mended, then the same command: it shows the next of the {rest:,} others",
        )
        raise DataError([*self.shown, total] if rest else self.shown)
