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

    def whole(self, *names: str) -> int:
        """A whole number. Raises CannotTell where it is missing or none."""
        found = self._find(names)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
        raise self._missing(names[0], found, "a whole number")

    def share(self, *names: str) -> float:
        """A number. Raises CannotTell where it is missing or none."""
        found = self._find(names)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
        raise self._missing(names[0], found, "a number")

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
