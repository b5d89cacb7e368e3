"""The planned run as transformers' TrainingArguments, for people who keep the Trainer. Torch-free."""

from typing import Any

from launcher.backends.options import BACKENDS
from launcher.facts import Plan
from launcher.recipe.schema import Recipe
from launcher.recipe.training import Every

_HEAD = '''"""Written by `launcher compile --to trainer` for recipe {name} on {backend}, {ranks} process(es).

{rows} rows a step = {micro} x {accumulation} accumulation x {ranks} process(es): start exactly so many.
The Trainer averages over micro batches; the launcher over the targets of the whole step.
"""

from transformers import TrainingArguments

ARGUMENTS = {{
'''
_TAIL = '''}


def training_arguments(**changes):
    """The arguments, with changes laid over them."""
    return TrainingArguments(**(ARGUMENTS | changes))
'''


def trainer_text(recipe: Recipe, plan: Plan, ds_path: str | None) -> str:
    """A Python file whose `training_arguments()` gives the TrainingArguments."""
    step = plan.step
    head = _HEAD.format(
        name=plan.recipe_name,
        backend=plan.backend,
        ranks=step.num_ranks,
        rows=step.global_batch_size,
        micro=step.micro_batch_size,
        accumulation=step.accumulation_steps,
    )
    lines = [f"    {key!r}: {value!r}," for key, value in trainer_arguments(recipe, plan, ds_path).items()]
    return head + "\n".join(lines) + "\n" + _TAIL


def trainer_arguments(recipe: Recipe, plan: Plan, ds_path: str | None) -> dict[str, Any]:
    """Keyword arguments of TrainingArguments (transformers 5)."""
    return {
        "output_dir": f"{recipe.output_dir}/{plan.recipe_name}",
        **_batch(recipe, plan),
        **_optimizer(recipe, plan),
        **_arithmetic(recipe, plan),
        **_intervals(recipe),
        "seed": recipe.training.seed,
        "dataloader_num_workers": recipe.data.dataloader_num_workers,
        "report_to": [name for name in recipe.tracking.report_to if name != "none"],
        "logging_nan_inf_filter": False,
        **_spread(recipe, ds_path),
    }


def _batch(recipe: Recipe, plan: Plan) -> dict[str, Any]:
    grouped = {"train_sampling_strategy": "group_by_length"} if recipe.data.group_by_length else {}
    return {
        "per_device_train_batch_size": plan.step.micro_batch_size,
        "per_device_eval_batch_size": recipe.training.per_device_eval_batch_size,
        "gradient_accumulation_steps": plan.step.accumulation_steps,
        "num_train_epochs": recipe.training.num_train_epochs,
        "max_steps": recipe.training.max_steps or -1,
        **grouped,
    }


def _optimizer(recipe: Recipe, plan: Plan) -> dict[str, Any]:
    """Warm-up below 1 is a share of all steps there as well."""
    options = recipe.training
    return {
        "learning_rate": plan.learning_rate,
        "lr_scheduler_type": options.lr_scheduler_type,
        "warmup_steps": options.warmup if options.warmup < 1 else int(options.warmup),
        "optim": options.optim,
        "weight_decay": options.weight_decay,
        "adam_beta1": options.adam_beta1,
        "adam_beta2": options.adam_beta2,
        "adam_epsilon": options.adam_epsilon,
        "max_grad_norm": options.max_grad_norm,
    }


def _arithmetic(recipe: Recipe, plan: Plan) -> dict[str, Any]:
    """`tf32` only where it is on: the Trainer refuses the key on a machine without such a card."""
    found: dict[str, Any] = {
        "bf16": plan.precision == "bf16",
        "fp16": plan.precision == "fp16",
        "use_cpu": plan.device == "cpu",
    }
    if recipe.training.tf32 is True:
        found["tf32"] = True
    if recipe.training.activation_checkpointing and not recipe.backend.name.startswith("fsdp"):
        found["gradient_checkpointing"] = True
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    return found


def _intervals(recipe: Recipe) -> dict[str, Any]:
    options = recipe.training
    evaluates = recipe.data.eval_file is not None or recipe.data.eval_fraction is not None
    found: dict[str, Any] = {
        "logging_steps": options.logging_steps,
        "save_total_limit": options.save_total_limit,
    }
    found |= _interval("eval", options.eval_steps if evaluates else None, recipe)
    found |= _interval("save", options.save_steps, recipe)
    if options.load_best_model_at_end:
        found["load_best_model_at_end"] = True
    if options.metric_for_best_model is not None:
        found["metric_for_best_model"] = options.metric_for_best_model
        found["greater_is_better"] = options.metric_for_best_model not in ("loss", "perplexity")
    return found


def _interval(kind: str, every: Every | None, recipe: Recipe) -> dict[str, Any]:
    """Steps are whole numbers there, and a number below 1 is a share of the whole run."""
    strategy = f"{kind}_strategy"
    if every is None:
        return {strategy: "no"}
    options = recipe.training
    if every.unit == "epochs":
        share = every.amount / options.num_train_epochs
        if every.amount == 1 or options.max_steps is not None or share >= 1:
            return {strategy: "epoch"}
        return {strategy: "steps", f"{kind}_steps": share}
    rows = options.global_batch_size
    return {strategy: "steps", f"{kind}_steps": every.in_steps(rows_per_step=rows, steps_per_epoch=1)}


def _spread(recipe: Recipe, ds_path: str | None) -> dict[str, Any]:
    """What the backend needs said to the Trainer beside the starter's own file."""
    backend = BACKENDS.get(recipe.backend.name)
    if ds_path is not None:
        return {"deepspeed": ds_path}
    config = backend.accelerate_config(recipe.hardware.gpus).get("fsdp_config")
    if config is not None:
        return {"fsdp": True, "fsdp_config": _fsdp(recipe, config)}
    return {"ddp_find_unused_parameters": False} if recipe.hardware.gpus > 1 else {}


def _fsdp(recipe: Recipe, config: dict[str, Any]) -> dict[str, Any]:
    """The Trainer's keys are Accelerate's without the prefix."""
    options = recipe.backend.model_dump()
    found = {
        "version": config["fsdp_version"],
        "auto_wrap_policy": config["fsdp_auto_wrap_policy"],
        "activation_checkpointing": recipe.training.activation_checkpointing,
        "reshard_after_forward": options["reshard_after_forward"],
        "offload_params": config["fsdp_offload_params"],
        "state_dict_type": config["fsdp_state_dict_type"],
        "cpu_ram_efficient_loading": config["fsdp_cpu_ram_efficient_loading"],
    }
    if options["wrap_classes"]:
        found["transformer_layer_cls_to_wrap"] = [*options["wrap_classes"]]
    return found
