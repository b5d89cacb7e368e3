"""The setting of this launcher's own step: what a recipe decides, and how the step runs it.

Trained weights are fp32 under autocast, frozen ones in the compute type with fp32 adapters; rows of a batch
are padded to the longest; the loss is plain or chunked; checkpointing is not re-entrant; DDP's gradients
are views of its buckets; a save takes one parameter after another.
"""

from typing import Any, Literal

from launcher.adapters.count import count
from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS, BackendOptions
from launcher.data.options import DataOptions
from launcher.memory.phases import PhaseCount, phase_counts, reached
from launcher.memory.setting import Adapter, Setting
from launcher.models.shape import ModelShape
from launcher.optim.table import OPTIMIZERS
from launcher.recipe.schema import Recipe

_PRECISIONS: dict[str, Literal["fp32", "bf16", "fp16"]] = {
    "fp32": "fp32",
    "bf16": "bf16",
    "fp16": "fp16",
    "bf16-emulated": "bf16",
}


def setting_of(
    recipe: Recipe,
    shape: ModelShape,
    *,
    backend: str,
    num_ranks: int,
    micro_batch: int,
    precision: str,
    weights_dtype: str,
) -> Setting:
    """One rank's setting. `precision` and `weights_dtype` as the plan chose them; rows in `micro_batch`.

    `num_ranks` counts the cards: model_parallel's one process lays its blocks over them.
    Raises RecipeError where an adapter's targets do not exist in this architecture.
    """
    training, data = recipe.training, recipe.data
    options = _options(recipe, backend)
    chunk = training.loss_chunk_bytes if shape.task == "causal_lm" else None
    trains_base = METHODS.get(recipe.adapter.method).trains_base
    dtype: Any = weights_dtype
    # Phases only add to what is open, so that the last one takes the most.
    largest = freezing_phases(recipe, shape)[-1:] if trains_base else []
    asked_eval = training.per_device_eval_batch_size
    return Setting(
        shape=shape,
        method=recipe.adapter.method,
        adapter=None if trains_base else adapter_of(recipe, shape),
        micro_batch=rows_at_once(data, micro_batch),
        seq_len=longest(data),
        weights_dtype=dtype,
        trained_params=largest[0].trained_params if largest else None,
        graph_blocks=largest[0].graph_blocks if largest else None,
        trainable_dtype=dtype if trains_base else "float32",
        precision=_PRECISIONS[precision],
        quantisation=_quantisation(recipe),
        double_quant=recipe.model.load_in_4bit and recipe.model.bnb_4bit_use_double_quant,
        optimizer=_optimizer(training.optim),
        checkpointing="full" if training.activation_checkpointing else "none",
        attention=_attention(recipe.model.attn_implementation, shape),
        loss="chunked" if chunk else "plain",
        loss_chunk_tokens=max(1, chunk // (4 * shape.vocab_size)) if chunk else 0,
        checkpoint_copy=training.async_save is True and training.save_steps is not None,
        backend=backend,
        sharding_kind=_kind(backend),
        sharding=BACKENDS.get(backend).sharding,
        num_ranks=num_ranks,
        reduce_bucket_elements=getattr(options, "reduce_bucket_size", 50_000_000),
        prefetch_bucket_elements=getattr(options, "stage3_prefetch_bucket_size", 50_000_000),
        reuse_distance_elements=getattr(options, "stage3_max_reuse_distance", 1_000_000_000),
        live_elements=getattr(options, "stage3_max_live_parameters", 1_000_000_000),
        persistence_elements=getattr(options, "stage3_param_persistence_threshold", 100_000),
        eval_batch=0 if asked_eval == "auto" else asked_eval,
        num_workers=data.dataloader_num_workers,
        variable_length=not data.packing,
        repeats_kv=not data.packing,  # transformers 5.24: sdpa takes grouped heads only where no mask is used
    )


def freezing_phases(recipe: Recipe, shape: ModelShape) -> list[PhaseCount]:
    """What trains from which epoch on, of the phases that the run reaches; empty where nothing is frozen."""
    if not recipe.freeze.is_used:
        return []
    epochs = recipe.training.num_train_epochs if recipe.training.max_steps is None else None
    return reached(phase_counts(recipe.freeze, shape), epochs)


def _optimizer(name: str) -> Any:
    return OPTIMIZERS[name].in_memory


def _options(recipe: Recipe, backend: str) -> BackendOptions:
    """The recipe's own options where it names this backend, else the backend's defaults."""
    if recipe.backend.name == backend:
        return recipe.backend
    return BACKENDS.get(backend).options(name=backend)


def _kind(backend: str) -> Any:
    for kind in ("fsdp2", "zero1", "zero2", "zero3"):
        if backend.startswith(kind):
            return kind
    return "none"


def _quantisation(recipe: Recipe) -> Any:
    if recipe.model.load_in_4bit:
        return recipe.model.bnb_4bit_quant_type
    return "int8" if recipe.model.load_in_8bit else "none"


def _attention(asked: str, shape: ModelShape) -> Any:
    if asked == "flash_attention_2":
        return "flash"
    if asked == "auto":
        return "sdpa" if "sdpa" in shape.attention_kernels else "eager"
    return asked


def adapter_of(recipe: Recipe, shape: ModelShape) -> Adapter:
    """The trained parameters beside frozen weights."""
    found = count(recipe.adapter, shape)
    return Adapter(
        method=recipe.adapter.method,
        num_params=found.num_params,
        rank=found.rank,
        targets=found.targets,
        virtual_tokens=found.virtual_tokens,
        dropout=float(getattr(recipe.adapter, "lora_dropout", 0.0)),
        head_copy_params=found.head_copy_params,
    )


def longest(data: DataOptions) -> int:
    """Most tokens of a row: the worst batch holds the longest ones."""
    return data.max_length if isinstance(data.max_length, int) else data.max_length.cap


def rows_at_once(data: DataOptions, micro_batch: int) -> int:
    """Rows of the worst micro batch, where a number of tokens bounds it too."""
    if data.micro_batch_tokens is None:
        return micro_batch
    return max(1, min(micro_batch, data.micro_batch_tokens // longest(data)))
