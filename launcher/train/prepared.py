"""The data of a run, ready for the first step: from the cache, or read, tokenised and kept.

Nothing here needs a process group: ranks of one machine that start together wait for a file, never in a
collective that could time out.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from launcher.data.attention_torch import AttentionScores
from launcher.data.cache import Cache
from launcher.data.cache_entry import Content, without_rows
from launcher.data.cache_files import content_of
from launcher.data.cache_key import KeyParts, code_part, settings_part, tokenizer_part
from launcher.data.cache_place import cache_root
from launcher.data.place import source_files, source_root
from launcher.data.progress import reporting_to
from launcher.data.split import Splits, read_splits
from launcher.data.tokens import TokenStore, tokenise
from launcher.hardware import limits
from launcher.models.load_torch import check_length, length_limit, load_config, load_model, load_tokenizer
from launcher.models.source import find_model
from launcher.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The tokenizer, what is known of the data, its tokens, and what to tell."""

    tokenizer: Any
    splits: Splits
    store: TokenStore
    eval_store: TokenStore | None
    notices: tuple[str, ...]


def prepare_data(
    recipe: Recipe,
    *,
    say: Callable[[str], object],
    local_rank: int = 0,
    root: Path | None = None,
    verify: bool = False,
) -> Prepared:
    """Tokens for a recipe, from the cache below `root` (the usual place where None).

    Called by every rank: one of a machine makes the tokens, `local_rank` 0 by preference, the others wait
    for its file. `say` gets lines while there is something to wait for. `verify` reads all bytes again.
    Raises LauncherError, the same on every rank.
    """
    options = recipe.data
    tokenizer, config = load_tokenizer(recipe.model), load_config(recipe.model)
    limit = _room_for_rows(recipe, config)
    token_types = _learns_token_types(config)
    if isinstance(options.max_length, int):
        check_length(options.max_length, limit)
    verify = verify or options.verify_cache

    def make() -> Content:
        return _make(recipe, tokenizer, limit, token_types=token_types)

    cache = Cache(root or cache_root())
    settings = settings_part(
        options, task=recipe.task, seed=recipe.training.seed, limit=limit, token_types=token_types
    )
    parts = _parts(recipe, tokenizer, settings, cache, verify=verify)
    if parts is None:
        content, said = make(), "tokens are not kept: a hub data set without a pinned revision may change"
    else:
        found = cache.get(parts, make, say, verify=verify, makes_it=local_rank == 0)
        content, said = found.content, found.said
    stores = [store for store in (content.train, content.evaluation) if store is not None]
    return Prepared(
        tokenizer=tokenizer,
        splits=content.splits,
        store=content.train,
        eval_store=content.evaluation,
        notices=(
            *content.splits.notices,
            *(notice for store in stores for notice in store.notices),
            str(content.train.length),
            *_budget(recipe),
            said,
        ),
    )


def _room_for_rows(recipe: Recipe, config: Any) -> int | None:
    """Tokens of a row that the position table has room for, beside an adapter's virtual ones."""
    limit = length_limit(config)
    return None if limit is None else limit - getattr(recipe.adapter, "num_virtual_tokens", 0)


def _learns_token_types(config: Any) -> bool:
    """Whether the model tells the two texts of a pair apart by token types, as BERT does; RoBERTa has one."""
    return (getattr(config, "type_vocab_size", None) or 0) > 1


def _budget(recipe: Recipe) -> tuple[str, ...]:
    budget = recipe.data.micro_batch_tokens
    if budget is None:
        return ()
    rows = recipe.training.global_batch_size
    return (f"micro batches of at most {budget} tokens, padding included; a step stays {rows} rows",)


@contextmanager
def _threads() -> Iterator[None]:
    """The tokenizer's own threads: as many as there are cores to use, not as many as the host has."""
    name = "RAYON_NUM_THREADS"
    given = os.environ.get(name)
    os.environ.setdefault(name, str(limits.cores().amount))  # read at the first use, once a process
    try:
        yield
    finally:
        if given is None:
            del os.environ[name]


def _make(recipe: Recipe, tokenizer: Any, limit: int | None, *, token_types: bool) -> Content:
    options = recipe.data
    eval_path = Path(options.eval_file) if options.eval_file else None
    with _bar("reading", None):
        splits = read_splits(options, Path(options.train_file), eval_path, recipe.task, recipe.training.seed)
    num_rows = len(splits.train) + (len(splits.evaluation) if splits.evaluation else 0)
    arguments: dict[str, Any] = {
        "options": options,
        "task": recipe.task,
        "template": options.template,
        "token_types": token_types,
    }
    if _asks_the_model(recipe):
        arguments["scores"] = _attention(recipe, tokenizer)
    with _threads(), _bar("tokenising", num_rows):
        train = tokenise(splits.train, tokenizer, limit=limit, **arguments)
        evaluation = None
        if splits.evaluation is not None:
            evaluation = tokenise(splits.evaluation, tokenizer, length=train.length, **arguments)
    return Content(splits=without_rows(splits), train=train, evaluation=evaluation)


@contextmanager
def _bar(doing: str, num_rows: int | None) -> Iterator[None]:
    """Rows a second and the time left, where a person looks on."""
    with (
        tqdm(total=num_rows, unit=" rows", desc=doing, disable=not sys.stderr.isatty()) as bar,
        reporting_to(bar.update),
    ):
        yield


def _parts(recipe: Recipe, tokenizer: Any, settings: str, cache: Cache, *, verify: bool) -> KeyParts | None:
    """What the tokens depend on; None where the data's content cannot be told without loading it."""
    options = recipe.data
    contents = []
    for path in (Path(name) for name in (options.train_file, options.eval_file) if name):
        found = source_files(path)
        if not found:
            return None
        contents.append(content_of(found, cache.notes, verify=verify, root=source_root(path)))
    return KeyParts(
        data="+".join(contents),
        tokenizer=tokenizer_part(tokenizer),
        settings=settings,
        model=_model_part(recipe, cache, verify=verify),
        code=code_part(),
        place=os.path.abspath(options.train_file),  # noqa: PTH100  a pattern is no path to resolve
    )


def _asks_the_model(recipe: Recipe) -> bool:
    """Whether tokens depend on the model's weights: its attention chooses the context."""
    context = recipe.data.context
    return recipe.task == "classification" and context.turns > 0 and context.retention == "attention"


def _attention(recipe: Recipe, tokenizer: Any) -> AttentionScores:
    eager = recipe.model.model_copy(update={"attn_implementation": "eager"})
    model = load_model(
        eager,
        task="classification",
        dtype="float32",
        label_names=("a", "b"),
        pad_token_id=tokenizer.pad_token_id,
    )
    limit = length_limit(load_config(recipe.model))
    return AttentionScores(model, limit=limit, pad_token_id=tokenizer.pad_token_id)


def _model_part(recipe: Recipe, cache: Cache, *, verify: bool) -> str:
    if not _asks_the_model(recipe):
        return ""
    source = find_model(recipe.model)
    folder = Path(source.location)
    if not folder.is_dir():
        return f"{source.location}@{source.revision}"
    kinds = (".safetensors", ".bin", ".gguf", ".json")
    files = sorted(file for file in folder.iterdir() if file.suffix in kinds)
    return content_of(files, cache.notes, verify=verify)
