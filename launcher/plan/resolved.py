"""A recipe with the plan's values in the places that said `auto`."""

from pathlib import Path
from typing import Any

from launcher.facts import Machine, Plan
from launcher.precision import choose_tf32
from launcher.recipe.dump import written
from launcher.recipe.library import folder
from launcher.recipe.schema import Recipe


def resolved(recipe: Recipe, plan: Plan, machine: Machine) -> Recipe:
    """The recipe as planned: precision, weight type, micro batch, rate, device are values now."""
    changes = {
        "training": _training(recipe, plan, machine),
        "model": {"dtype": plan.weights_dtype},
        "hardware": {"device": plan.device},
        "data": _short_paths(recipe),
    }
    sections = {name: getattr(recipe, name).model_copy(update=update) for name, update in changes.items()}
    return recipe.model_copy(update=sections)


def _training(recipe: Recipe, plan: Plan, machine: Machine) -> dict[str, Any]:
    options, micro = recipe.training, plan.step.micro_batch_size
    evaluated = options.per_device_eval_batch_size
    return {
        "per_device_train_batch_size": micro,
        "per_device_eval_batch_size": micro if evaluated == "auto" else evaluated,
        "precision": plan.precision if options.precision == "auto" else options.precision,
        "tf32": choose_tf32(options.tf32, plan.precision, machine).enabled,
        # already scaled: scaling the result again would change it
        "learning_rate": plan.learning_rate,
        "lr_scaling": "none",
        "lr_reference_batch_size": None,
    }


def _short_paths(recipe: Recipe) -> dict[str, str]:
    """Shipped data by the name under which every installation finds it; other files as they are."""
    files = {key: getattr(recipe.data, key) for key in ("train_file", "eval_file")}
    shipped = {key: Path(text) for key, text in files.items() if text}
    return {
        key: path.relative_to(folder()).as_posix()
        for key, path in shipped.items()
        if path.is_relative_to(folder())
    }


def recipe_text(recipe: Recipe) -> str:
    """The resolved recipe as YAML. What only the model or the data can decide is named, and left out."""
    lines, open_keys = [], []
    for section, value in recipe.model_dump(mode="json").items():
        if not isinstance(value, dict):
            lines.append(f"{section}: {written(value)}")
            continue
        lines.append(f"{section}:")
        for key, inner in value.items():
            if inner == "auto":
                open_keys.append(f"{section}.{key}")
            else:
                lines.append(f"  {key}: {written(inner)}")
    head = [f"# decided by the model and the data when they are read: {', '.join(open_keys)}"]
    return "\n".join([*(head if open_keys else []), *lines]) + "\n"
