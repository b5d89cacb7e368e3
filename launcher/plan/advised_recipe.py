"""Advice as a recipe file: the values that matter, each with its reason behind it."""

from typing import Any

from launcher.plan.advise import Advice
from launcher.plan.standing import in_words
from launcher.plan.time_model import step_words
from launcher.recipe.dump import written
from launcher.units import format_bytes

_WIDTH = 110
# Keys that are written even where they have their default: what a person turns first.
_ALWAYS: dict[str, tuple[str, ...]] = {
    "model": ("model_name_or_path",),
    "data": ("train_file", "max_length"),
    "adapter": ("method", "lora_r", "lora_alpha", "lora_target_modules"),
    "training": ("global_batch_size", "per_device_train_batch_size", "num_train_epochs", "learning_rate"),
    "backend": ("name",),
    "hardware": ("device", "gpu", "gpus"),
}


def recipe_text(advice: Advice) -> str:
    """The YAML, ready for `launcher check`, `rehearse` and `run`."""
    reasons = {choice.key: choice.reason for choice in advice.choices}
    values = {choice.key: choice.value for choice in advice.choices}
    lines = [*_head(advice), ""]
    for section, inner in _sections(advice, values).items():
        if not isinstance(inner, dict):
            lines.append(f"{section}: {written(inner)}")
            continue
        lines += ["", f"{section}:"]
        for key, value in inner.items():
            lines += _line(key, value, reasons.get(f"{section}.{key}", ""))
    return "\n".join(lines) + "\n"


def _head(advice: Advice) -> list[str]:
    asked, found = advice.situation, advice.judged
    speed = f", {step_words(found.time.seconds)} a step at full length" if found.time else ""
    lines = [
        f"# advice for {asked.rows:,} rows on {asked.gpus} x {asked.gpu}: "
        f"{format_bytes(found.breakdown.peak_bytes)} at the peak ({found.breakdown.peak.name}){speed}",
        f"# {in_words(found.breakdown.standing)}; `launcher plan FILE` shows every part",
    ]
    return lines + [f"# tried before: {reason}" for reason in advice.rejected]


def _sections(advice: Advice, values: dict[str, Any]) -> dict[str, Any]:
    recipe, asked = advice.recipe, advice.situation
    method = recipe.adapter.method
    summary = (
        f"{method} of {asked.model.rpartition('/')[2]} for {asked.rows:,} rows, {asked.gpus} x {asked.gpu}"
    )
    dumped, changed = recipe.model_dump(mode="json"), recipe.model_dump(mode="json", exclude_defaults=True)
    found: dict[str, Any] = {"summary": summary, "task": recipe.task}
    for section, always in _ALWAYS.items():
        keys = [*always, *(key for key in changed.get(section, {}) if key not in always)]
        found[section] = {key: dumped[section][key] for key in keys if key in dumped[section]}
    for key, value in values.items():
        section, _, leaf = key.partition(".")
        found[section][leaf] = value
    found["training"]["save_steps"] = str(recipe.training.save_steps)
    return found


def _line(key: str, value: Any, reason: str) -> list[str]:
    if key == "train_file" and not reason:
        reason = "your rows here" if str(value).startswith("data/") else ""
    plain = f"  {key}: {written(value)}"
    if not reason:
        return [plain]
    one = f"{plain}  # {reason}"
    return [one] if len(one) <= _WIDTH else [f"  # {reason}", plain]
