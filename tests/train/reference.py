"""Trains the same model on the same rows with this project, transformers' Trainer and a plain loop.

Run as a program: one process for all cases, because imports cost more than the steps. Prints JSON,
case -> trainer -> [losses], [gradient norms].
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, Trainer, TrainerCallback
from transformers import TrainingArguments as Arguments

from launcher.data.batches_torch import collate, windows
from launcher.data.order import RowOrder
from launcher.data.split import read_splits
from launcher.data.tokens import TokenStore, tokenise
from launcher.facts import Starter, StepSettings
from launcher.models.load_torch import load_tokenizer
from launcher.optim.build_torch import parameter_groups
from launcher.process.arguments import parse
from launcher.recipe.load import load_recipe
from launcher.recipe.schema import Recipe
from launcher.train.rank import run_rank
from tests import launching, tiny

STEPS = 20
Curves = tuple[list[float], list[float]]


def write_recipe(folder: Path, name: str, *, rows: int, micro: int, batch: int) -> Path:
    """A recipe file over the tiny model `name`, without dropout, in fp32."""
    lm = name == "llama"
    data = "instructions.json" if lm else "train.csv"
    if not (folder / data).exists():
        (tiny.write_instructions if lm else tiny.write_csv)(folder / data, 240)
    path = folder / f"{name}-{rows}-{micro}-{batch}.yaml"
    path.write_text(
        f"""task: {"causal_lm" if lm else "classification"}
model: {{model_name_or_path: {folder / name}}}
data: {{train_file: {folder / data}, max_train_rows: {rows}, max_length: 60,
  template: {"plain" if lm else "auto"}}}
training: {{global_batch_size: {batch}, per_device_train_batch_size: {micro}, max_steps: {STEPS},
  learning_rate: 2e-3, warmup: 3, weight_decay: 0.01, logging_steps: 1, precision: fp32, seed: 11}}
tracking: {{report_to: none}}
output_dir: {folder / "runs"}
"""
    )
    return path


def ours(path: Path) -> Curves:
    """The product, through a rank's whole life."""
    run_rank(parse(["--recipe", str(path), "--new"]), Starter(name="python", backend="single_gpu"))
    lines = launching.metrics(path.parent / "runs" / path.stem)
    return [line["loss"] for line in lines], [line["grad_norm"] for line in lines]


def prepared(recipe: Recipe) -> tuple[TokenStore, RowOrder, StepSettings]:
    """The rows, their order and their cut, as the product has them."""
    splits = read_splits(recipe.data, Path(recipe.data.train_file), None, recipe.task, recipe.training.seed)
    tokenizer = load_tokenizer(recipe.model)
    store = tokenise(
        splits.train, tokenizer, options=recipe.data, task=recipe.task, template=recipe.data.template
    )
    options = recipe.training
    micro = options.per_device_train_batch_size
    assert isinstance(micro, int)
    settings = StepSettings(
        global_batch_size=options.global_batch_size,
        micro_batch_size=micro,
        accumulation_steps=options.global_batch_size // micro,
        num_ranks=1,
    )
    return store, RowOrder(store.lengths, options.global_batch_size, options.seed), settings


def fresh_model(recipe: Recipe) -> Any:
    """The model as the product loads it."""
    family = AutoModelForCausalLM if recipe.task == "causal_lm" else AutoModelForSequenceClassification
    torch.manual_seed(recipe.training.seed)
    return family.from_pretrained(recipe.model.model_name_or_path, dtype=torch.float32)


class _Curves(TrainerCallback):  # type: ignore[misc]
    def __init__(self) -> None:
        self.lines: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **other: Any) -> None:
        """Losses are not rounded here."""
        if logs and "loss" in logs:
            self.lines.append(dict(logs))


def with_trainer(path: Path, *, repaired: bool) -> Curves:
    """transformers' Trainer over the micro batches in the product's order."""
    recipe = load_recipe(str(path)).recipe
    store, order, settings = prepared(recipe)
    stream = windows(store, order, settings, 0, 0, STEPS, pad_token_id=0)
    batches = [batch for window in stream for batch in window.micro_batches]
    options = recipe.training
    arguments = Arguments(
        output_dir=str(path.parent / "trainer"),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=settings.accumulation_steps,
        max_steps=STEPS,
        learning_rate=options.learning_rate,
        warmup_steps=int(options.warmup),
        weight_decay=options.weight_decay,
        logging_steps=1,
        report_to="none",
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
    )
    curves = _Curves()
    trainer = Trainer(
        model=fresh_model(recipe),
        args=arguments,
        train_dataset=batches,
        data_collator=lambda rows: rows[0],
        callbacks=[curves],
    )
    if repaired and recipe.task == "classification":
        trainer.loss_is_scaled_for_ga = False
    trainer.train()
    return [line["loss"] for line in curves.lines], [line["grad_norm"] for line in curves.lines]


def plainly(path: Path, *, mean_of_means: bool = False, clip: float = 1.0) -> Curves:
    """Plain torch, the whole global batch in one piece; or, wrongly, the mean of micro batches' means."""
    recipe = load_recipe(str(path)).recipe
    store, order, settings = prepared(recipe)
    model = fresh_model(recipe).train()
    options = recipe.training
    optimizer = torch.optim.AdamW(parameter_groups(model, options.weight_decay), lr=options.learning_rate)
    losses, norms = [], []
    for step, window in enumerate(windows(store, order, settings, 0, 0, STEPS, pad_token_id=0)):
        rate = options.learning_rate * min(step / 3, (STEPS - step) / (STEPS - 3))
        for group in optimizer.param_groups:
            group["lr"] = rate
        batches = window.micro_batches if mean_of_means else [collate(store, order.window(step), 0)]
        parts = [model(**batch).loss / len(batches) for batch in batches]
        total = sum(parts)
        total.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), clip)))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(total.detach()))
    return losses, norms


def main(folder: Path) -> dict[str, dict[str, Curves]]:
    """All cases."""
    torch.set_num_threads(1)
    tiny.write_bert(folder / "bert")
    tiny.write_bert(folder / "roberta", kind="roberta")
    tiny.write_llama(folder / "llama")
    found: dict[str, dict[str, Curves]] = {}
    for name in ("bert", "roberta", "llama"):
        for micro in (16, 4):
            path = write_recipe(folder, name, rows=160, micro=micro, batch=16)
            found[f"{name}-{16 // micro}"] = {
                "ours": ours(path),
                "trainer": with_trainer(path, repaired=True),
                "stock": with_trainer(path, repaired=False),
                "means": plainly(path, mean_of_means=True),
            }
    for name in ("bert", "llama"):
        path = write_recipe(folder, name, rows=149, micro=4, batch=16)
        found[f"{name}-uneven"] = {
            "ours": ours(path),
            "plain": plainly(path),
            "means": plainly(path, mean_of_means=True),
            "unclipped": plainly(path, clip=1e9),
        }
    return found


if __name__ == "__main__":
    found = main(Path(sys.argv[1]))
    print(json.dumps(found))
