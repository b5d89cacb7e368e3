"""A recipe with the origin of every value, as rules look at it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from launcher.errors import Problem
from launcher.recipe.provenance import DEFAULT, Origin
from launcher.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Given:
    """A recipe with the origin of every value: what a rule looks at."""

    recipe: Recipe
    origins: Mapping[str, Origin]

    def origin(self, key: str) -> Origin:
        """Where the key's value came from; for a mapping, its first name's."""
        inside = (origin for each, origin in self.origins.items() if each.startswith(f"{key}."))
        return self.origins.get(key) or next(inside, DEFAULT)

    def is_given(self, key: str) -> bool:
        """Whether somebody wrote the key, whatever the value."""
        return self.origin(key).kind not in ("default", "derived")

    def at(self, key: str) -> str:
        """The place where the key was written; the recipe's own file where it was not."""
        return self.origin(key).place() if self.is_given(key) else self.file()

    def file(self) -> str:
        """The recipe's file, without a line."""
        own = next((each for each in self.origins.values() if each.kind == "recipe"), DEFAULT)
        return own.place().rpartition(":")[0]

    def problem(self, key: str, what: str, right: str, type_: str) -> Problem:
        """A finding at the place of `key`."""
        return Problem(where=self.at(key), what=f"{key}: {what}", right=right, type=type_)

    @property
    def evaluates(self) -> bool:
        """Whether rows are held out."""
        return self.recipe.data.eval_file is not None or self.recipe.data.eval_fraction is not None

    def no_effect(self, key: str, why: str) -> str:
        """A notice of an option that is written and changes nothing."""
        return f"{self.at(key)}  {key}: has no effect: {why}"


Rule = Callable[[Given], Iterator[Problem]]
Notice = Callable[[Given], Iterator[str]]
