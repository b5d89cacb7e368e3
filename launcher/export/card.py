"""The model card of an exported folder: what was trained on what, how, and what was measured. No torch."""

import json
from pathlib import Path
from typing import Any

_PROMPTED = ("PREFIX_TUNING", "PROMPT_TUNING", "P_TUNING")
_GENERATE = (
    "model.generate() of PEFT 0.21 is wrong with such adapters under transformers 5.24, without an error"
)
FOLDER = "FOLDER"  # where whoever reads the card has put it
_HEAD = """---
base_model: {base}
library_name: {library}
pipeline_tag: {tag}
---

# {name}

{summary}

Fine-tuned from `{base}` by method `{method}` for {steps} optimizer steps.
"""


def write_card(folder: Path, run: Path, facts: dict[str, Any], *, name: str) -> None:
    """Write README.md, titled `name`, from the run's recipe, its facts and its measured figures."""
    recipe = _recipe(run)
    summary = _json(run / "summary.json")
    is_adapter = (folder / "adapter_config.json").is_file()
    text = _HEAD.format(
        base=facts["model"]["model_name_or_path"],
        library="peft" if is_adapter else "transformers",
        tag="text-classification" if facts["task"] == "classification" else "text-generation",
        name=name,
        summary=recipe.get("summary", ""),
        method=recipe.get("adapter", {}).get("method", "full"),
        steps=facts["steps"],
    )
    parts = [text, _use(folder, facts), _labels(facts), _measured(summary), _settings(run)]
    (folder / "README.md").write_text("\n".join(part for part in parts if part), encoding="utf-8")


def _use(folder: Path, facts: dict[str, Any]) -> str:
    """The lines of Python that load it: a method of our own has to be made known to PEFT first."""
    auto = "AutoModelForCausalLM" if facts["task"] == "causal_lm" else "AutoModelForSequenceClassification"
    lines = [
        f"from transformers import {auto}, AutoTokenizer",
        "",
        f'tokenizer = AutoTokenizer.from_pretrained("{FOLDER}")',
    ]
    kind = _json(folder / "adapter_config.json").get("peft_type")
    if kind is None:
        lines.append(f'model = {auto}.from_pretrained("{FOLDER}")')
    else:
        lines = ["from peft import PeftModel", *lines, _base_line(auto, facts)]
        if kind == "BOTTLENECK":
            lines[:0] = ["from launcher.adapters.bottleneck_peft_torch import register"]
            lines.append("register()  # PEFT has no such method of its own")
        lines.append(f'model = PeftModel.from_pretrained(base, "{FOLDER}")')
        if kind in _PROMPTED and facts["task"] == "causal_lm":
            lines += [
                "# answers: `launcher predict`, or token by token from model(...).logits;",
                f"# {_GENERATE}",
            ]
    return "\n".join(["## Use", "", "```python", *lines, "```", ""])


def _base_line(auto: str, facts: dict[str, Any]) -> str:
    model, labels = facts["model"], facts.get("label_names") or []
    words = [json.dumps(model["model_name_or_path"])]
    words += [f"num_labels={len(labels)}"] if labels else []
    words += [f"gguf_file={json.dumps(model['gguf_file'])}"] if model.get("gguf_file") else []
    bits = next((bits for bits in (4, 8) if model.get(f"load_in_{bits}bit")), None)
    note = f"  # trained over weights of {bits} bits" if bits else ""
    return f"base = {auto}.from_pretrained({', '.join(words)}){note}"


def _labels(facts: dict[str, Any]) -> str:
    names = facts.get("label_names") or []
    lines = [f"| {index} | {name} |" for index, name in enumerate(names)]
    return "\n".join(["## Labels", "", "| id | name |", "|---|---|", *lines, ""]) if lines else ""


def _measured(summary: dict[str, Any]) -> str:
    quality = summary.get("quality") or {}
    lines = [f"| {name} | {value:.4f} |" for name, value in quality.items() if isinstance(value, float)]
    head = ["## Measured on the held-out rows", "", "| metric | value |", "|---|---|"]
    return "\n".join([*head, *lines, ""]) if lines else ""


def _settings(run: Path) -> str:
    path = run / "recipe.yaml"
    if not path.is_file():
        return ""
    return f"## Recipe\n\n```yaml\n{path.read_text(encoding='utf-8').strip()}\n```\n"


def _recipe(run: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML

    path = run / "recipe.yaml"
    found: dict[str, Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found
