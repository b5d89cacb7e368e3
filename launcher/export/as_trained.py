"""Rows for a trained model, made the way its training made them: context, windows, length, template."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from launcher.data.examples import Dialogues, Examples
from launcher.data.layout import LAYOUTS
from launcher.data.options import DataOptions
from launcher.data.tokens import TokenStore, tokenise
from launcher.models.options import ModelOptions
from launcher.recipe.document import read_document

_PAIRS = ("text_pair", "regression")
_TYPED = Path("typed text")


def data_options(folder: Path, facts: dict[str, Any]) -> DataOptions:
    """The recipe's `data` section, for rows that are judged as they come: none is left out, none is repeated.

    A model folder says it itself; one of an older run has it beside it, in the run's recipe.yaml.
    """
    given = facts.get("data") or _beside(folder) or {}
    changes = {
        "train_file": given.get("train_file") or "-",
        "eval_file": None,
        "eval_fraction": None,
        "max_length": facts["max_length"],
        "max_train_rows": None,
        "drop_duplicates": False,
        "packing": False,
        "class_weights": "none",
        "layout": facts.get("layout") or "auto",
    }
    known = {key: value for key, value in given.items() if key in DataOptions.model_fields}
    return DataOptions.model_validate(known | changes)


def _beside(folder: Path) -> dict[str, Any] | None:
    path = folder.parent / "recipe.yaml"
    if not path.is_file():
        return None
    entry = read_document(path).entries.get("data")
    found: dict[str, Any] | None = entry.plain() if entry else None
    return found


def typed_rows(texts: Sequence[str], options: DataOptions, layout: str) -> Examples:
    """Texts that a person types as rows of the layout that was trained on.

    Of a pair, the two texts stand around a tab; of a dialogue, earlier turns stand in front, tabs between.
    """
    columns: dict[str, Sequence[str]] = {"text": [*texts]}
    dialogues = places = None
    if layout in _PAIRS and (layout == "text_pair" or any("\t" in text for text in texts)):
        parts = [text.partition("\t") for text in texts]
        columns = {"text": [first for first, _, _ in parts], "pair": [second for _, _, second in parts]}
    elif "speaker" in {role.name for role in LAYOUTS.get(layout).roles} and options.context.turns:
        turns = [text.split("\t") for text in texts]
        ends = np.cumsum([len(each) for each in turns], dtype=np.int64)
        spoken = [turn for each in turns for turn in each]
        dialogues = Dialogues(
            texts=spoken, speakers=[""] * len(spoken), offsets=np.concatenate([np.zeros(1, np.int64), ends])
        )
        places = ends - 1
        columns = {"text": [each[-1] for each in turns], "speaker": [""] * len(turns)}
    return Examples(
        layout=layout,
        texts=columns,
        labels=None,
        lines=[*range(1, len(texts) + 1)],
        path=_TYPED,
        dialogues=dialogues,
        utterances=places,
    )


def tokens_of(examples: Examples, tokenizer: Any, options: DataOptions, facts: dict[str, Any]) -> TokenStore:
    """Their ids, cut or divided into windows as in training."""
    from launcher.data.lengths import Length

    return tokenise(
        examples,
        tokenizer,
        options=options,
        task=facts["task"],
        template=facts.get("template") or options.template,
        length=Length(value=facts["max_length"], reason="as trained"),
        scores=_scores(tokenizer, options, facts),
        token_types=bool(facts.get("token_types")),
    )


def _scores(tokenizer: Any, options: DataOptions, facts: dict[str, Any]) -> Any:
    """Attention of the base model, where the recipe lets it choose the context."""
    if not options.context.turns or options.context.retention != "attention":
        return None
    from launcher.data.attention_torch import AttentionScores
    from launcher.models.load_torch import length_limit, load_config, load_model

    base = ModelOptions.model_validate(facts["model"] | {"attn_implementation": "eager"})
    model = load_model(
        base,
        task="classification",
        dtype="float32",
        label_names=("a", "b"),
        pad_token_id=tokenizer.pad_token_id,
    )
    return AttentionScores(model, limit=length_limit(load_config(base)), pad_token_id=tokenizer.pad_token_id)


def precision_of(folder: Path, facts: dict[str, Any]) -> str:
    """The arithmetic that the run evaluated in."""
    path = folder.parent / "plan.json"
    if "precision" in facts or not path.is_file():
        return str(facts.get("precision", "fp32"))
    return str(json.loads(path.read_text(encoding="utf-8")).get("precision", "fp32"))
