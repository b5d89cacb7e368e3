"""Reads a pretrained model and its tokenizer, always in a stated weight type."""

import logging
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from launcher.errors import Problem, RecipeError
from launcher.models.options import ModelOptions
from launcher.models.quantise_torch import keep_packing, quantisation
from launcher.models.source import ModelSource, find_model, unreachable

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_AUTO = {"classification": AutoModelForSequenceClassification, "causal_lm": AutoModelForCausalLM}
_NOT_FOUND = (OSError, ValueError)
# What a layout's labels are, in the words of a model's configuration; classes are its default.
PROBLEM_TYPES = {"class": None, "set": "multi_label_classification", "number": "regression"}


def _common(options: ModelOptions, source: ModelSource) -> dict[str, Any]:
    found: dict[str, Any] = dict(source.arguments())
    found["trust_remote_code"] = options.trust_remote_code
    if source.gguf_file:
        found["gguf_file"] = source.gguf_file
    return found


def load_config(options: ModelOptions) -> Any:
    """The model's configuration object. Raises RecipeError where it cannot be had."""
    source = find_model(options)
    try:
        return AutoConfig.from_pretrained(source.location, **_common(options, source))
    except _NOT_FOUND as error:
        raise unreachable(options, source, str(error)) from error


def load_tokenizer(options: ModelOptions) -> PreTrainedTokenizerBase:
    """The model's fast tokenizer, with a padding token (the end token where it has none)."""
    source = find_model(options)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.location, **_common(options, source))
    except _NOT_FOUND as error:
        raise unreachable(options, source, str(error)) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def length_limit(config: Any) -> int | None:
    """Most tokens that the position table takes; None where positions are not a table.

    The RoBERTa family starts its positions at the padding id + 1, so its table of 514 takes 512.
    """
    table = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if table is None or getattr(config, "alibi", False):
        return None
    offset_families = ("roberta", "xlm-roberta", "camembert", "longformer", "xlm-roberta-xl", "mpnet")
    if getattr(config, "model_type", "") in offset_families:
        return int(table) - (int(config.pad_token_id) + 1)
    return int(table)


def check_length(max_length: int, limit: int | None) -> None:
    """Raise RecipeError where rows could be longer than the model's position table."""
    if limit is not None and max_length > limit:
        raise RecipeError(
            Problem(
                where="data.max_length",
                what=f"{max_length} tokens are more than this model's positions",
                right=f"at most {limit}",
                type=f"data.max_length={limit}",
            )
        )


def load_model(
    options: ModelOptions,
    *,
    task: str,
    dtype: str,
    label_names: tuple[str, ...],
    pad_token_id: int | None,
    problem_type: str | None = None,
) -> nn.Module:
    """The pretrained model with a head for `task`, weights in `dtype` (always passed, never inferred).

    Raises RecipeError where the model cannot be had or lacks the requested attention kernel.
    """
    source = find_model(options)
    arguments = _common(options, source) | {"dtype": DTYPES[dtype]}
    if options.attn_implementation != "auto":
        arguments["attn_implementation"] = options.attn_implementation
    if options.is_quantised:
        arguments["quantization_config"] = quantisation(options, task=task, compute_dtype=DTYPES[dtype])
    if task == "classification":
        # A checkpoint that was a classifier of other labels gets a new head.
        arguments |= _labels(label_names) | {"ignore_mismatched_sizes": True}
        arguments |= {"problem_type": problem_type} if problem_type else {}
    config = load_config(options)
    try:
        model = _AUTO[task].from_pretrained(source.location, **arguments)
    except _NOT_FOUND as error:
        raise _cannot_load(options, source, error) from error
    if pad_token_id is not None and config.pad_token_id is None:
        model.config.pad_token_id = pad_token_id
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    # A dequantised GGUF model must not be saved with the file's quantisation settings.
    if source.gguf_file and hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
        model.hf_quantizer = None  # nor be refused as packed: its weights are plain
    keep_packing(model)
    # Packed weights have their own type, and the rest has been read in the stated one.
    return model if options.is_quantised else model.to(DTYPES[dtype])  # type: ignore[no-any-return]


def _labels(label_names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "num_labels": len(label_names),
        "id2label": dict(enumerate(label_names)),
        "label2id": {name: index for index, name in enumerate(label_names)},
    }


def _cannot_load(options: ModelOptions, source: ModelSource, error: Exception) -> RecipeError:
    if source.is_local and Path(source.location).is_dir():
        return RecipeError(
            Problem(
                where="model",
                what=f"the model in {source.location} does not load: {str(error).splitlines()[0][:300]}",
                right="complete weights of an architecture that fits the recipe's task",
                type="model.model_name_or_path=<another folder>, or model.attn_implementation=eager",
            )
        )
    return unreachable(options, source, str(error))


def quiet_loading() -> None:
    """Keep the loading reports of transformers to errors: a new head is expected, and said by us."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    disable_progress_bar()


def checkpoint_activations(model: Any) -> None:
    """Recompute activations in the backward pass, by the non-reentrant form.

    The reentrant one drops the gradients of adapters behind frozen inputs. The method was renamed in
    transformers 5.17 or later; the old name warns there.
    """
    arguments = {"use_reentrant": False}
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(arguments)
    else:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=arguments)
