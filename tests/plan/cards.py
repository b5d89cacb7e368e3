"""What the planner's tests share: shapes of well-known models, recipes as people write them, cards."""

from typing import Any

from launcher.models import catalogue
from launcher.models.read_shape import shape_of
from launcher.models.shape import ModelShape
from launcher.recipe.schema import Recipe

LLAMA, BERT, SMALL = "meta-llama/Llama-2-7b-hf", "google-bert/bert-base-uncased", "Qwen/Qwen2.5-0.5B"


def shape(model: str, task: str = "causal_lm") -> ModelShape:
    """A model of the catalogue."""
    config = catalogue.config(model)
    assert config is not None, model
    return shape_of(config, task=task)


def recipe(model: str = LLAMA, adapter: Any = "lora", backend: str = "single_gpu", **training: Any) -> Recipe:
    """Sixteen rows a step, everything else as given."""
    is_text = model != BERT
    return Recipe.model_validate(
        {
            "task": "causal_lm" if is_text else "classification",
            "model": {"model_name_or_path": model},
            "data": {"train_file": "t.jsonl", "max_length": 512},
            "adapter": adapter,
            "training": {"global_batch_size": 16} | training,
            "backend": backend,
        }
    )
