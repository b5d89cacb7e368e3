"""Placeholders in texts: `{{name}}` becomes what the recipe says, and what nobody filled is named."""

import re
from collections import Counter
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


class Filler:
    """Fills placeholders, and remembers which were used and which had no value."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values` maps a placeholder's name to its text."""
        self.values = values
        self.used: Counter[str] = Counter()
        self.left: Counter[str] = Counter()

    def __call__(self, text: str) -> str:
        """The text with every known placeholder filled."""
        return _PLACEHOLDER.sub(self._one, text) if "{{" in text else text

    def _one(self, match: re.Match[str]) -> str:
        name = match.group(1)
        known = name in self.values
        (self.used if known else self.left)[name] += 1
        return self.values[name] if known else match.group(0)

    def notices(self) -> tuple[str, ...]:
        """Placeholders without a value, and values without a placeholder."""
        left = [
            f"{{{{{name}}}}} stands unfilled {count:,} times in the texts; to fill it: data.fill.{name}=TEXT"
            for name, count in sorted(self.left.items())
        ]
        unused = [
            f"data.fill.{name} has no effect: no text holds {{{{{name}}}}}"
            for name in sorted(self.values)
            if name not in self.used
        ]
        return (*left, *unused)
