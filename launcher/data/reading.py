"""How a data file is to be read: what the recipe says of its bytes, its columns and its split."""

from dataclasses import dataclass, replace
from typing import Self

from launcher.data.options import DataOptions


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The part of the options that reading needs. `key` names the file in messages."""

    format: str = "auto"
    column_names: tuple[str, ...] | None = None
    encoding: str = "auto"
    repair_c1: bool = True
    split: str | None = None
    subset: str | None = None
    source: str | None = None
    key: str = "data.train_file"

    @classmethod
    def of(cls, options: DataOptions) -> Self:
        """For the training file."""
        return cls(
            format=options.format,
            column_names=options.column_names,
            encoding=options.encoding,
            repair_c1=options.repair_c1,
            split=options.train_split,
            subset=options.subset,
            source=options.source,
        )

    def for_evaluation(self, options: DataOptions) -> Self:
        """The same for the evaluation file."""
        return replace(self, key="data.eval_file", split=options.eval_split or "test")


DEFAULT = Reading()
