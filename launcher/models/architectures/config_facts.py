"""A configuration's values, with the defaults that its family leaves unsaid, read by name and type."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.errors import CannotTell, Problem


@dataclass(frozen=True, kw_only=True)
class ConfigFacts:
    """`values` as in config.json; `defaults` of this `model_type`, for what a saved file leaves out.

    Several names may mean one fact (`n_layer`, `num_hidden_layers`): the first that is there counts.
    """

    model_type: str
    values: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def _find(self, names: tuple[str, ...]) -> Any:
        for source in (self.values, self.defaults):
            for name in names:
                if source.get(name) is not None:
                    return source[name]
        return None

    def has(self, *names: str) -> bool:
        """Whether the fact is known at all."""
        return self._find(names) is not None

    def whole(self, *names: str, least: int | None = None) -> int:
        """A whole number, of `least` or more. Raises CannotTell where it is missing or none."""
        found = self._find(names)
        if isinstance(found, int) and not isinstance(found, bool) and (least is None or found >= least):
            return found
        right = "a whole number" if least is None else f"a whole number from {least}"
        raise self._missing(names[0], found, right)

    def size(self, *names: str) -> int:
        """A whole number above 0. Raises CannotTell where it is missing or none."""
        return self.whole(*names, least=1)

    def share(self, *names: str) -> float:
        """A number from 0 to 1. Raises CannotTell where it is missing or none."""
        found = self._find(names)
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= 1:
            return float(found)
        raise self._missing(names[0], found, "a number from 0 to 1")

    def flag(self, *names: str) -> bool:
        """Yes or no. Raises CannotTell where it is missing or neither."""
        found = self._find(names)
        if isinstance(found, bool):
            return found
        raise self._missing(names[0], found, "true or false")

    def switch(self, name: str) -> bool:
        """Yes or no, and no where this family has no such switch: its class ignores the key then."""
        return name in self.defaults and self.flag(name)

    def rate(self, name: str) -> float:
        """A dropout rate, and none where this family has no such dropout."""
        return self.share(name) if name in self.defaults else 0.0

    def text(self, *names: str) -> str:
        """A word. Raises CannotTell where it is missing or none."""
        found = self._find(names)
        if isinstance(found, str):
            return found
        raise self._missing(names[0], found, "a word")

    def words(self, name: str) -> tuple[str, ...]:
        """A list of words, or words with bars between them; none where it is missing."""
        found = self._find((name,)) or ()
        if isinstance(found, str):
            return tuple(found.lower().split("|"))
        if isinstance(found, list | tuple):
            return tuple(str(each) for each in found)
        raise self._missing(name, found, "a list of words")

    def _missing(self, name: str, found: Any, right: str) -> CannotTell:
        said = "lacks it" if found is None else f"says {found!r}"
        return CannotTell(
            Problem(
                where=f"config.json: {name}",
                what=f"the size of a {self.model_type} model needs {name}, and its configuration {said}",
                right=right,
                type=f"the model's whole config.json, with {name}",
            )
        )
