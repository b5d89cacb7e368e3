"""Builds the tiny model: the real configuration class with tiny sizes, random weights, on disk."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoConfig, AutoModel, AutoModelForCausalLM

from launcher.errors import Problem, RecipeError
from launcher.models import catalogue
from launcher.models.load_torch import load_config, load_tokenizer, quiet_loading
from launcher.models.options import ModelOptions
from launcher.models.source import find_model
from launcher.rehearse.sizes import tiny
from launcher.rehearse.tokenizer_torch import write_stand_in

_CLASSES = {"classification": AutoModel, "causal_lm": AutoModelForCausalLM}
_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken", "spiece*")


@dataclass(frozen=True, kw_only=True)
class TinyModel:
    """What was built, in words, and its vocabulary's size."""

    architecture: str
    sizes: str
    config_source: str
    tokenizer_source: str
    is_stand_in: bool
    vocabulary_size: int


def write_model(
    options: ModelOptions, folder: Path, *, task: str, seed: int, texts: Iterable[str]
) -> TinyModel:
    """Write model and tokenizer in Hugging Face layout. Reads local files only.

    `texts` teach the stand-in tokenizer. Raises RecipeError where the architecture cannot be known.
    """
    quiet_loading()
    config, config_source = _config(options)
    tokenizer, tokenizer_source = _tokenizer(options)
    is_stand_in = tokenizer is None
    if tokenizer is None:
        chat = options.model_name_or_path.lower().endswith(("instruct", "chat", "-it"))
        tokenizer = write_stand_in(folder, texts, task=task, chat=chat)
    else:
        tokenizer.save_pretrained(folder)
    small = _shrunk(config, tokenizer, is_stand_in=is_stand_in)
    with _seeded(seed):
        model = _CLASSES[task].from_config(small, dtype=torch.float32)
    model.save_pretrained(folder)
    return TinyModel(
        architecture=type(model).__name__,
        sizes=_sizes(small, model),
        config_source=config_source,
        tokenizer_source=tokenizer_source,
        is_stand_in=is_stand_in,
        vocabulary_size=small.vocab_size,
    )


def _config(options: ModelOptions) -> tuple[Any, str]:
    """The real configuration, or one of the same architecture from the table of known models.

    A GGUF file takes seconds to read and says no more than the table.
    """
    facts, name = _known_facts(options), options.model_name_or_path
    source = find_model(options)
    if facts is None or source.gguf_file is None:
        try:
            return load_config(options), source.note
        except RecipeError as error:
            if facts is None or source.location != name:
                raise _unknown(options, error) from error
    return AutoConfig.for_model(**facts), f"{name} from the table of known models"


def _known_facts(options: ModelOptions) -> dict[str, Any] | None:
    """The table's entry, where its class comes with transformers and not as remote code."""
    facts = catalogue.config(options.model_name_or_path)
    return facts if facts is None or facts["model_type"] in CONFIG_MAPPING else None


def _unknown(options: ModelOptions, error: RecipeError) -> RecipeError:
    name = options.model_name_or_path
    if Path(name).expanduser().exists():
        return error
    return RecipeError(
        Problem(
            where="model.model_name_or_path",
            what=f"the architecture of '{name}' is not known here: it is no folder, not in the hub's cache, "
            f"and not in the table of known models{_alike(name)}",
            right="a folder with the model's config.json; weights are not needed",
            type="model.model_name_or_path=FOLDER",
        )
    )


def _alike(name: str) -> str:
    if catalogue.config(name) is not None:
        return " whose class comes with transformers"
    near = catalogue.nearest_names(name)
    return f" (which has {', '.join(near)})" if near else ""


def _tokenizer(options: ModelOptions) -> tuple[Any, str]:
    """The model's own tokenizer, or None where there is none; one that is here and broken is an error."""
    source = find_model(options)
    folder = Path(source.location)
    is_here = source.gguf_file is not None or any([*folder.glob(name)] for name in _TOKENIZER_FILES)
    if source.is_local and folder.is_dir() and not is_here:
        return None, "a stand-in: the folder has none"
    try:
        return load_tokenizer(options), source.note
    except RecipeError:
        if folder.is_dir():
            raise
        return None, "a stand-in: the model's own is not on this machine"


def _shrunk(config: Any, tokenizer: Any, *, is_stand_in: bool) -> Any:
    fields = tiny(config.to_dict()) | {"vocab_size": len(tokenizer)}
    for name in ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"):
        if name in fields and (is_stand_in or _is_outside(fields[name], len(tokenizer))):
            fields[name] = getattr(tokenizer, name)
    return type(config)(**fields)


def _is_outside(token_id: Any, vocabulary_size: int) -> bool:
    return isinstance(token_id, int) and token_id >= vocabulary_size


def _sizes(config: Any, model: Any) -> str:
    heads = config.num_attention_heads
    groups = getattr(config, "num_key_value_heads", None) or heads
    shown = f"{heads} heads" if groups == heads else f"{heads} heads over {groups} key-value heads"
    count = sum(parameter.numel() for parameter in model.parameters())
    return (
        f"{config.num_hidden_layers} layers, width {config.hidden_size}, {shown}, "
        f"vocabulary {config.vocab_size:,}, {count:,} parameters"
    )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
