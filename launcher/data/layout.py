"""What a layout is: the roles that a row's columns play, and where the layouts are registered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from launcher.registry import Registry

Kind = Literal["text", "label", "turns", "key"]
Labels = Literal["class", "set", "number"]


@dataclass(frozen=True, kw_only=True)
class Role:
    """What a column is for. `aliases` are the column names that it is known by, in lower case.

    `accepts` looks at a value where the column's name alone does not tell (None: any value will do).
    `may_be_missing`: without a column rows have no such text, not an empty one.
    """

    name: str
    aliases: tuple[str, ...] = ()
    required: bool = True
    kind: Kind = "text"
    accepts: Callable[[Any], bool] | None = None
    may_be_missing: bool = False

    def columns_in(self, columns: tuple[str, ...]) -> list[str]:
        """The columns that may play this role: the one of its own name, else those of its aliases."""
        own = [column for column in columns if column.lower() == self.name]
        return own or [column for column in columns if column.lower() in self.aliases]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A shape of row: its roles, and the task that it is for.

    `blank_separates`: blank rows of a text file are borders between documents, not missing texts.
    `complete` names groups of roles of which at least one must hold a text.
    `by_name_only`: never recognised, always asked for.
    `labels`: what the role of kind label holds: one class, a set of classes, or a number.
    """

    name: str
    summary: str
    task: str
    roles: tuple[Role, ...]
    complete: tuple[tuple[str, ...], ...]
    blank_separates: bool = False
    labels: Labels = "class"
    by_name_only: bool = False

    def role(self, name: str) -> Role | None:
        """The role of that name."""
        return next((role for role in self.roles if role.name == name), None)

    def of_kind(self, kind: Kind) -> list[Role]:
        """The roles of a kind."""
        return [role for role in self.roles if role.kind == kind]

    def texts(self, columns: Mapping[str, str]) -> list[str]:
        """The names of the roles whose texts rows have, where roles have these columns."""
        return [role.name for role in self.of_kind("text") if role.name in columns or not role.may_be_missing]

    @property
    def needed(self) -> set[str]:
        """The names of the roles that a row must have."""
        return {role.name for role in self.roles if role.required}


LAYOUTS: Registry[Layout] = Registry("data layout", "launcher.data.layouts")
