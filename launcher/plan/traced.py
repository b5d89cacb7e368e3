"""Planning by trace: a check beside the closed form, and in its place where an architecture is unknown."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from launcher.errors import CannotTell, Problem
from launcher.facts import Plan
from launcher.hardware.catalog import Gpu
from launcher.memory.breakdown import Breakdown
from launcher.memory.fits import Verdict, fits
from launcher.memory.of_recipe import longest, rows_at_once
from launcher.memory.trace import trace
from launcher.memory.trace_request import TraceRequest, request_of
from launcher.models.config_file import locate_config
from launcher.plan.bars import bar_lines
from launcher.plan.choose import make_plan, plan_lines
from launcher.plan.fit import Judged
from launcher.plan.pretend import pretend_machine
from launcher.plan.standing import in_words
from launcher.plan.turned import turned
from launcher.recipe.load import LoadedRecipe
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes


@dataclass(frozen=True, kw_only=True)
class TracedPlan:
    """A recipe of an architecture that only a trace knows, as it was asked for."""

    name: str
    gpu: Gpu
    plan: Plan
    breakdown: Breakdown
    verdict: Verdict


def trace_shown(recipe: Recipe, shown: Judged) -> Breakdown:
    """Trace the plan that is shown, for comparison. Raises CannotTell where it cannot be traced."""
    planned = turned(recipe, shown.candidate.changes)
    request = request_of(
        shown.candidate.setting,
        locate_config(recipe.model).values,
        adapter=planned.adapter.model_dump(mode="json"),
        backend_options=planned.backend.model_dump(mode="json"),
    )
    return _with_context(trace(replace(request, card_bytes=shown.verdict.usable_bytes)))


def compared(shown: Judged, traced: Breakdown) -> str:
    """Both peaks and their difference, in one line."""
    estimate, found = shown.breakdown.peak_bytes, traced.peak_bytes
    return (
        f"trace     {format_bytes(found)} at the peak ({traced.peak.name}), {traced.standing.note}; "
        f"the estimate is {estimate / found - 1:+.1%}"
    )


def plan_by_trace(loaded: LoadedRecipe, gpu: Gpu, *, ask_hub: bool = False) -> TracedPlan:
    """The recipe as asked, its memory from a trace alone: no alternatives, no time, no host memory."""
    recipe, num_ranks = loaded.recipe, loaded.recipe.hardware.gpus
    machine = pretend_machine(gpu.name, num_ranks)
    plan = make_plan(
        recipe, name=loaded.name, machine=machine, backend=recipe.backend.name, num_ranks=num_ranks
    )
    config = locate_config(recipe.model, ask_hub=ask_hub).values
    found = _with_context(trace(_request(recipe, plan, config, gpu)))
    return TracedPlan(
        name=loaded.name, gpu=gpu, plan=plan, breakdown=found, verdict=fits(found, gpu.usable_bytes)
    )


def _with_context(found: Breakdown) -> Breakdown:
    return replace(found, context_bytes=found.process_bytes[0] - found.reserved_bytes[0])


def _require_whole_step(recipe: Recipe) -> None:
    """Raise CannotTell for what the trace does not run: frozen parts, and optimizers without a trace."""
    optim = recipe.training.optim
    if recipe.freeze.is_used or optim not in ("adamw_torch_fused", "adamw_torch"):
        what = "parts of the model are frozen" if recipe.freeze.is_used else f"the optimizer is {optim}"
        raise CannotTell(
            Problem(
                where="--trace",
                what=f"{what}, which the trace does not run",
                right="the estimate by formulas, which counts it",
                type="launcher plan RECIPE",
            )
        )


def _request(recipe: Recipe, plan: Plan, config: Mapping[str, Any], gpu: Gpu) -> TraceRequest:
    training, model = recipe.training, recipe.model
    _require_whole_step(recipe)
    trains_base = recipe.adapter.method == "full"
    asked_eval = training.per_device_eval_batch_size
    attention = {"auto": "sdpa", "flash_attention_2": "sdpa"}.get(
        model.attn_implementation, model.attn_implementation
    )
    return TraceRequest(
        config=config,
        task=recipe.task,
        num_labels=len(recipe.data.labels or ()) or 2,
        adapter=recipe.adapter.model_dump(mode="json"),
        micro_batch=rows_at_once(recipe.data, plan.step.micro_batch_size),
        seq_len=longest(recipe.data),
        accumulation_steps=plan.step.accumulation_steps,
        weights_dtype=plan.weights_dtype,
        trainable_dtype=plan.weights_dtype if trains_base else "float32",
        precision=plan.precision,
        attention=attention,
        checkpointing=training.activation_checkpointing,
        loss_chunk_bytes=training.loss_chunk_bytes if recipe.task == "causal_lm" else None,
        optim="adamw_torch" if training.optim == "adamw_torch" else "adamw_torch_fused",
        quantisation=model.bnb_4bit_quant_type if model.load_in_4bit else "none",
        double_quant=model.load_in_4bit and model.bnb_4bit_use_double_quant,
        backend=plan.backend,
        backend_options=recipe.backend.model_dump(mode="json"),
        num_ranks=plan.step.num_ranks,
        eval_batch=0 if asked_eval == "auto" else asked_eval,
        padded=not recipe.data.packing,
        compute_capability=gpu.compute_capability,
        card_bytes=gpu.usable_bytes,
    )


def lines(answer: TracedPlan) -> list[str]:
    """The verdict, the bars and what was decided."""
    verdict, found = answer.verdict, answer.breakdown
    over = verdict.needed_bytes - verdict.usable_bytes
    said = (
        f"fits, {format_bytes(-over)} to spare"
        if verdict.fits
        else f"does not fit: {format_bytes(over)} over"
    )
    card = f"{answer.plan.step.num_ranks} x {answer.gpu.name} ({format_bytes(verdict.usable_bytes)} usable)"
    low, high = found.reserved_bytes
    return [
        f"{answer.name} on {card}: {said}, by trace alone",
        "",
        "GPU memory of one rank",
        *bar_lines(found, verdict.usable_bytes),
        f"allocated {format_bytes(found.peak_bytes)} at the peak ({found.peak.name}), "
        f"reserved {format_bytes(low)} to {format_bytes(high)}",
        f"standing: {in_words(found.standing)}",
        "",
        *plan_lines(answer.plan),
        "no alternatives, host memory or time: the closed form does not know this architecture",
    ]


def as_json(answer: TracedPlan) -> dict[str, Any]:
    """The same for programs."""
    found = answer.breakdown
    return {
        "recipe": answer.name,
        "gpu": answer.gpu.name,
        "gpus": answer.plan.step.num_ranks,
        "fits": answer.verdict.fits,
        "usable_bytes": answer.verdict.usable_bytes,
        "needed_bytes": answer.verdict.needed_bytes,
        "peak_bytes": found.peak_bytes,
        "peak_phase": found.peak.name,
        "method": found.method,
        "standing": in_words(found.standing),
        "phases": [{"name": phase.name, "bytes": phase.num_bytes} for phase in found.phases],
    }
