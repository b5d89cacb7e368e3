"""Named choices: a folder of pieces, looked up by name, with the nearest name when one is unknown."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from launcher.errors import Problem, UnknownSetting

T = TypeVar("T")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name closest to `name`, or None when nothing is near; at `cutoff` 1 only the same one is."""
    found = difflib.get_close_matches(name.lower(), [*known], n=1, cutoff=cutoff)
    return found[0] if found else None


def load_attribute(place: str) -> Any:
    """The attribute behind `package.module:name`: how a torch-free half names its other half."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class Registry(Generic[T]):
    """The pieces of one kind. A piece registers itself when its module is imported."""

    def __init__(self, kind: str, package: str, other_names: Mapping[str, str] | None = None) -> None:
        """`kind` is the word in messages; `package` the folder whose modules are the pieces.

        `other_names` are names of elsewhere, in lower case with `_`, and what to type for each here.
        """
        self.kind = kind
        self.package = package
        self.other_names = dict(other_names or {})
        self._pieces: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str, piece: T) -> T:
        """Add a piece under its name. A name can be taken only once."""
        assert name not in self._pieces, f"{self.kind} {name} is registered twice"
        self._pieces[name] = piece
        return piece

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        folder = importlib.import_module(self.package)
        for module in pkgutil.iter_modules(folder.__path__):
            if not module.ispkg and not module.name.endswith("_torch"):
                importlib.import_module(f"{self.package}.{module.name}")

    def names(self) -> list[str]:
        """Every known name, sorted."""
        self._load()
        return sorted(self._pieces)

    def __iter__(self) -> Iterator[T]:
        """The pieces in the order of their names."""
        return iter([self._pieces[name] for name in self.names()])

    def get(self, name: str, where: str = "") -> T:
        """The piece of that name. Raises UnknownSetting with the nearest names."""
        self._load()
        if name in self._pieces:
            return self._pieces[name]
        close = self._meant(name)
        raise UnknownSetting(
            Problem(
                where=where,
                what=f"unknown {self.kind} '{name}'",
                right=f"one of: {', '.join(self.names())}",
                type=close or f"one of the {self.kind} names above",
            )
        )

    def _meant(self, name: str) -> str | None:
        """Another spelling of a known name, a name of elsewhere, or the nearest one."""
        plain = name.strip().lower().replace("-", "_").replace(" ", "_")
        same = [each for each in self._pieces if each.replace("_", "") == plain.replace("_", "")]
        return same[0] if same else self.other_names.get(plain) or nearest(name, self._pieces)
