"""The module with its adapter, and the backend's strategy over it: what `build` makes, once a phase."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.backends.strategy_torch import Parts, Strategy
from launcher.backends.zero import resolve
from launcher.data.layout import LAYOUTS
from launcher.data.split import Splits
from launcher.facts import Plan
from launcher.models.load_torch import PROBLEM_TYPES, checkpoint_activations, load_model
from launcher.optim.build_torch import make, parameter_groups, rates_of
from launcher.optim.rates import layerwise, second_matrix
from launcher.precision_torch import LossScale, StepPrecision
from launcher.recipe.schema import Recipe
from launcher.registry import load_attribute
from launcher.step.module import TrainModule
from launcher.step.packing_check import require_packing
from launcher.train.numbers_fp32 import keep_in_fp32
from launcher.train.world import World


def build_module(recipe: Recipe, plan: Plan, world: World, splits: Splits, tokenizer: Any) -> TrainModule:
    """The pretrained model with the adapter in it, as the step calls it. Raises LauncherError."""
    model = load_model(
        recipe.model,
        task=recipe.task,
        dtype=plan.weights_dtype,
        label_names=splits.label_names,
        pad_token_id=tokenizer.pad_token_id,
        problem_type=PROBLEM_TYPES[LAYOUTS.get(splits.layout).labels],
    )
    apply = load_attribute(METHODS.get(recipe.adapter.method).apply)
    base, model = model, apply(model, recipe.adapter, task=recipe.task)
    if recipe.training.activation_checkpointing:
        checkpoint_activations(base)
    precision = StepPrecision(name=plan.precision, device_type=world.device.type)
    module = TrainModule(
        model,
        task=recipe.task,
        precision=precision,
        chunk_bytes=recipe.training.loss_chunk_bytes,
        class_weights=splits.class_weights,
    )
    keep_in_fp32(module, recipe.training.fp32_modules)
    if recipe.data.packing:
        require_packing(module, recipe.data.most_tokens)
    return module


def connect(
    recipe: Recipe,
    plan: Plan,
    world: World,
    module: TrainModule,
    ds_config: dict[str, Any] | None,
    opened_at: Mapping[str, int],
) -> Strategy:
    """The backend's strategy over a module; `opened_at`: parameters that open later, with their step."""
    options = recipe.training

    def make_optimizer(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return make(
            options.optim,
            groups,
            learning_rate=plan.learning_rate,
            betas=(options.adam_beta1, options.adam_beta2),
            epsilon=options.adam_epsilon,
        )

    config = ds_config and resolve(
        ds_config,
        step=plan.step,
        precision=plan.precision,
        max_grad_norm=options.max_grad_norm,
        options=recipe.backend,
    )
    parts = Parts(
        module=module,
        groups=parameter_groups(
            module,
            options.weight_decay,
            rates_of(module, plan.learning_rate, _rate_factors(recipe, module)),
            opened_at,
        ),
        make_optimizer=make_optimizer,
        device=world.device,
        rank=world.rank,
        settings=plan.step,
        max_grad_norm=options.max_grad_norm,
        loss_scale=LossScale(StepPrecision(name=plan.precision, device_type=world.device.type)),
        name=plan.backend,
        options=recipe.backend,
        config=config or {},
    )
    strategy: Strategy = load_attribute(BACKENDS.get(plan.backend).connect)(parts)
    return strategy


def _rate_factors(recipe: Recipe, module: TrainModule) -> list[Callable[[str], float]]:
    """What divides the learning rate over the parameters, by name."""
    names = [name for name, _ in module.named_parameters()]
    decay, ratio = recipe.training.layerwise_lr_decay, getattr(recipe.adapter, "loraplus_lr_ratio", None)
    return [*([layerwise(names, decay)] if decay else []), *([second_matrix(ratio)] if ratio else [])]
