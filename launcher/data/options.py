"""The recipe's `data` section."""

from typing import Annotated

from pydantic import Field

from launcher.options import Options

Fraction = Annotated[float, Field(gt=0, lt=1)]


class DataOptions(Options):
    """Which rows to train and evaluate on, and how they become tokens."""

    train_file: str = Field(min_length=1, description="csv, tsv, json, jsonl or txt file.")
    eval_file: str | None = Field(None, description="Held-out file of the same shape.")
    eval_fraction: Fraction | None = Field(None, description="Share of the training rows held out, by seed.")
    source: str | None = Field(
        None, description="Where to get the files, when they are not shipped with the recipe."
    )
    layout: str = Field("auto", description="text_label, instruction or plain_text; auto: from the columns.")
    columns: dict[str, str] = Field(
        default_factory=dict, description="Role to column name, where they differ."
    )
    labels: tuple[str, ...] | None = Field(None, description="Label names in the order of their ids.")
    fill: dict[str, str] = Field(default_factory=dict, description="Placeholder {{name}} to its text.")
    template: str = Field(
        "auto", description="How an instruction becomes a prompt: chat, alpaca, plain or auto."
    )
    max_length: int = Field(512, ge=2, description="Tokens kept of one row.")
    max_train_rows: int | None = Field(None, ge=1, description="Train on this many rows only, drawn by seed.")
    max_eval_rows: int | None = Field(
        None, ge=1, description="Evaluate on this many rows only, drawn by seed."
    )
    group_by_length: bool = Field(True, description="Put rows of similar length into one batch.")
    pad_to_multiple_of: int | None = Field(
        None, ge=1, description="Round the padded length up to a multiple."
    )
    dataloader_num_workers: int = Field(0, ge=0, description="Processes that collate; 0: this one.")
