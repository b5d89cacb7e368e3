"""The recipe's `data` section."""

from typing import Annotated, Literal

from pydantic import Field

from launcher.options import Options

Fraction = Annotated[float, Field(gt=0, lt=1)]


Overflow = Literal["auto", "keep_head", "keep_tail", "keep_head_tail", "windows", "drop"]
Retention = Literal["nearest", "tfidf", "attention"]
Place = Literal["in_front", "behind"]


class LengthChoice(Options):
    """A length taken from the training rows: long enough for most of them, never above the cap."""

    percentile: float = Field(95, gt=0, le=100, description="Share of training rows that fit whole, in %.")
    cap: int = Field(512, ge=2, description="Most tokens, whatever the percentile says.")


class ContextOptions(Options):
    """What is shown with an utterance of a dialogue."""

    turns: int = Field(0, ge=0, description="Previous utterances that may be shown; 0: none.")
    retention: Retention = Field(
        "nearest", description="Which of them stay where not all fit: nearest, tfidf or attention."
    )
    place: Place = Field(
        "in_front",
        description="Where they stand: in_front of the utterance, or behind it, as a pair's second text.",
    )
    speakers: bool = Field(True, description="Write the speaker's name in front of every utterance.")


class DataOptions(Options):
    """Which rows to train and evaluate on, and how they become tokens."""

    train_file: str = Field(
        min_length=1,
        description="A csv, tsv, json, jsonl, parquet or txt file (also .gz, .zst), a folder or a pattern of "
        "such files, a saved `datasets` folder, or hf://OWNER/NAME.",
    )
    eval_file: str | None = Field(None, description="Held-out file of the same shape.")
    eval_fraction: Fraction | None = Field(None, description="Share of the training rows held out, by seed.")
    source: str | None = Field(
        None, description="Where to get the files, when they are not shipped with the recipe."
    )
    train_split: str = Field("train", description="Split of a hub data set to train on.")
    eval_split: str | None = Field(None, description="Split of a hub data set to evaluate on.")
    subset: str | None = Field(None, description="Subset (configuration) of a hub data set.")
    format: str = Field("auto", description="The files' format; auto: from their names' endings.")
    column_names: tuple[str, ...] | None = Field(
        None, description="Names for the columns of a csv or tsv file that has no header line."
    )
    encoding: str = Field(
        "auto", description="utf-8, gb18030, cp1252, ...; auto: utf-8, or what the bytes prove to be."
    )
    repair_c1: bool = Field(
        True, description="Turn C1 control characters back into the cp1252 punctuation that they stand for."
    )
    html: Literal["keep", "clean"] = Field(
        "keep", description="HTML entities and <br /> in texts: keep them, or write what they stand for."
    )
    empty_text: Literal["auto", "drop", "error", "keep"] = Field(
        "auto", description="Rows without text: auto leaves out up to 1 % and refuses more."
    )
    drop_duplicates: bool = Field(False, description="Leave out repeated rows (same texts and label).")
    max_leaked_fraction: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Share of evaluation rows whose text (20 characters or more) may also be trained on.",
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="balanced: rare classes weigh more in the loss, rows / (classes x class rows)."
    )
    layout: str = Field("auto", description="The shape of a row, such as text_label; auto: from the columns.")
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="Role to column name, where they differ. a.0.b looks inside a value, A+B joins columns, "
        "@file and @folder are where a row came from.",
    )
    labels: tuple[str, ...] | None = Field(None, description="Label names in the order of their ids.")
    fill: dict[str, str] = Field(default_factory=dict, description="Placeholder {{name}} to its text.")
    template: str = Field(
        "auto",
        description="How rows become prompts: chat (the model's own), chatml, alpaca, plain, none or auto.",
    )
    train_on: Literal["completions", "all"] = Field(
        "completions", description="Tokens that a language model learns: answers and their ends, or all."
    )
    max_lost_fraction: float = Field(
        0.01, ge=0, le=1, description="Share of rows that max_length may rob of their whole answer."
    )
    max_length: Annotated[int, Field(ge=2)] | LengthChoice = Field(
        512, description="Tokens kept of one row: a number, or {percentile: 95, cap: 512}."
    )
    overflow: Overflow = Field(
        "auto", description="Rows that are too long: what is kept of them, windows, or drop."
    )
    window_stride: int | None = Field(
        None, ge=1, description="Tokens from one window's start to the next; half a window where absent."
    )
    context: ContextOptions = Field(
        ContextOptions.model_validate({}), description="What is shown with an utterance of a dialogue."
    )
    packing: bool = Field(False, description="Several rows in one, unseen by one another (causal LM).")
    max_train_rows: int | None = Field(None, ge=1, description="Train on this many rows only, drawn by seed.")
    max_eval_rows: int | None = Field(
        None, ge=1, description="Evaluate on this many rows only, drawn by seed."
    )
    group_by_length: bool = Field(True, description="Put rows of similar length into one batch.")
    pad_to_multiple_of: int | None = Field(
        None, ge=1, description="Round the padded length up to a multiple."
    )
    micro_batch_tokens: int | None = Field(
        None, ge=1, description="Most tokens, padding included, that one card holds at once."
    )
    verify_cache: bool = Field(False, description="Read data files and cached tokens again, byte by byte.")
    dataloader_num_workers: int = Field(0, ge=0, description="Processes that collate; 0: this one.")

    @property
    def most_tokens(self) -> int:
        """The most tokens that a row can have, known before any row is read."""
        return self.max_length if isinstance(self.max_length, int) else self.max_length.cap
