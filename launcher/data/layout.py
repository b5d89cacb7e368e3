"""What a layout is: the roles that a row's columns play, and where the layouts are registered."""

from dataclasses import dataclass
from typing import Literal

from launcher.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Role:
    """What a column is for. `aliases` are the column names that it is known by, in lower case."""

    name: str
    aliases: tuple[str, ...] = ()
    required: bool = True
    kind: Literal["text", "label"] = "text"

    def columns_in(self, columns: tuple[str, ...]) -> list[str]:
        """The columns that may play this role: the one of its own name, else those of its aliases."""
        own = [column for column in columns if column.lower() == self.name]
        return own or [column for column in columns if column.lower() in self.aliases]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A shape of row: its roles, and the task that it is for.

    `blank_separates`: blank rows of a text file are borders between documents, not missing texts.
    `complete` names groups of roles of which at least one must hold a text.
    """

    name: str
    summary: str
    task: str
    roles: tuple[Role, ...]
    complete: tuple[tuple[str, ...], ...]
    blank_separates: bool = False

    def role(self, name: str) -> Role | None:
        """The role of that name."""
        return next((role for role in self.roles if role.name == name), None)


LAYOUTS: Registry[Layout] = Registry("data layout", "launcher.data.layouts")
