"""What a dialect is, and where dialects are registered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.recipe.importing.table import Row
from launcher.registry import Registry

if TYPE_CHECKING:
    from launcher.recipe.importing.draft import Draft


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One tool's files.

    `signs` are keys that only this tool has: they tell its files from the others'. `settle` takes what
    several keys say together before the `rows` are applied one by one. `blocks` are the mappings whose
    inner keys have rows of their own. `page` is the manual's page, without its ending.
    """

    name: str
    title: str
    page: str
    rows: tuple[Row, ...]
    signs: frozenset[str]
    settle: Callable[["Draft"], None]
    blocks: frozenset[str] = frozenset()
    task: str | None = None

    def row_of(self, name: str) -> Row | None:
        """The row for a key; case and the dash of command lines make no difference."""
        wanted = name.replace("-", "_").lower()
        return next((row for row in self.rows if wanted in [each.lower() for each in row.names]), None)


_OTHER_NAMES = {
    **dict.fromkeys(
        ("hf", "huggingface", "hugging_face", "transformers", "trl", "unsloth", "swift"), "trainer"
    ),
    **dict.fromkeys(("llamafactory", "lf"), "llama_factory"),
    "ds": "deepspeed",
}
DIALECTS: Registry[Dialect] = Registry("dialect", "launcher.recipe.importing.dialects", _OTHER_NAMES)
