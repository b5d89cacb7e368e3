"""From a model, a number of rows and a card to a recipe that fits, each value with its reason.

The order of methods follows the data: many rows can move every weight, few rows only a few parameters.
The planner then says what of it fits the card, and how.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from launcher.adapters.options import METHODS
from launcher.errors import DoesNotFit, LauncherError, Problem
from launcher.facts import Machine
from launcher.hardware import catalog
from launcher.hardware.catalog import Gpu
from launcher.models.config_file import find_config
from launcher.models.options import ModelOptions
from launcher.models.read_shape import require_dense, shape_of
from launcher.models.shape import ModelShape
from launcher.plan.advice_choices import Choice, Situation, choices, leaves_card
from launcher.plan.candidates import candidates
from launcher.plan.fit import Judged, fastest, judge, why_not
from launcher.plan.levers import BACKEND, MICRO, OPTIMIZER
from launcher.plan.pretend import pretend_machine
from launcher.plan.turned import turned
from launcher.recipe.schema import Recipe
from launcher.units import GIB, format_bytes

# From here on the rows can teach every weight; below this only few parameters should move.
MANY_ROWS = 100_000
FEW_ROWS = 2_000
# Encoders up to about this size are always trained whole: their states are small and few rows suffice.
SMALL_MODEL = 1_000_000_000
# Cards from here on (GiB) hold a 3B model's full training, recomputing its activations.
LARGE_CARD_GIB = 38
FULL_ON_LARGE_CARD = 4_000_000_000
# A plan whose memory is derived and not validated leaves so much of the card free.
CAUTIOUS_SHARE = 0.85
# Asked in this order for a job that the given card cannot hold.
LARGER_CARDS = ("rtx4090", "vgpu48", "a100_sxm_80", "h20")
# A step that much longer is worth a simpler backend.
HARDLY_SLOWER = 1.1


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A recipe that fits. `judged` is its plan, `rejected` what was tried before and why not."""

    situation: Situation
    recipe: Recipe
    choices: tuple[Choice, ...]
    judged: Judged
    rejected: tuple[str, ...]


def advise(situation: Situation) -> Advice:
    """The first method in the order of the data that fits. Raises DoesNotFit where none does."""
    found, rejected = _tried(situation)
    if found is None:
        raise DoesNotFit(_nothing_fits(situation, rejected))
    return found


def _tried(situation: Situation) -> tuple[Advice | None, list[str]]:
    """The advice, or None with what was tried and why it does not fit."""
    gpu = catalog.get(situation.gpu, "--gpu")
    machine = pretend_machine(gpu.name, situation.gpus)
    shape = _shape(situation)
    task = shape.task
    rejected: list[str] = []
    for method, why in methods(situation, shape, gpu):
        recipe = _draft(situation, task, shape, method)
        best, reason = _best(recipe, shape, machine, gpu, situation.gpus)
        if best is None:
            rejected.append(f"{method}: {reason}")
            continue
        final = turned(recipe, {**best.candidate.changes, MICRO: best.candidate.setting.micro_batch})
        found = choices(situation, final, shape, gpu, machine, best, why)
        made = Advice(situation=situation, recipe=final, choices=found, judged=best, rejected=tuple(rejected))
        return made, rejected
    return None, rejected


def _shape(situation: Situation) -> ModelShape:
    """The shape with the head of the task: language model where the architecture has one, else classifier."""
    config = find_config(ModelOptions(model_name_or_path=situation.model), ask_hub=situation.ask_hub)
    if situation.task is not None:
        return require_dense(shape_of(config, task=situation.task))
    try:
        shape = shape_of(config, task="causal_lm")
    except LauncherError:
        return shape_of(config, task="classification")
    return require_dense(shape) if shape.is_decoder else shape_of(config, task="classification")


def methods(situation: Situation, shape: ModelShape, gpu: Gpu) -> list[tuple[str, str]]:
    """Methods in the order in which they are tried, each with its reason."""
    rows, params = situation.rows, shape.num_params
    size = f"{params / 1e9:.1f}B" if params >= 1e9 else f"{params / 1e6:.0f}M"
    lora = ("lora", f"{rows:,} rows for {size} parameters: a few million trained ones are enough")
    full = ("full", "")
    if rows >= MANY_ROWS:
        return [("full", f"{rows:,} rows ({MANY_ROWS:,} or more) can move every weight"), lora]
    if params < SMALL_MODEL and (not shape.is_decoder or rows >= FEW_ROWS):
        return [("full", f"{size} parameters: every weight fits and learns from {rows:,} rows"), lora]
    if rows < FEW_ROWS:
        others = " or p_tuning" if "p_tuning" in METHODS.names() else ""
        return [("lora", f"few rows ({rows:,}): lora{others} moves little and forgets little")]
    if gpu.usable_bytes >= LARGE_CARD_GIB * GIB and params <= FULL_ON_LARGE_CARD:
        why = f"{size} parameters on {format_bytes(gpu.usable_bytes)}: all of them can be trained here"
        return [(full[0], why), lora]
    return [lora]


def _best(
    recipe: Recipe, shape: ModelShape, machine: Machine, gpu: Gpu, num_ranks: int
) -> tuple[Judged | None, str]:
    """The fastest plan that fits, or why there is none.

    AdamW on the card comes first, then 8-bit or factored states, then host memory, and packed weights only
    where nothing else fits; room to spare where memory is only derived; activations recomputed where a large
    language model trains whole.
    """
    judged = [judge(each, gpu, gpu.usable_bytes) for each in candidates(recipe, shape, machine, num_ranks)]
    plain = [each for each in judged if each.candidate.setting.quantisation == "none"]
    roomy = [each for each in plain if _is_roomy(each)]
    if shape.is_decoder and shape.num_params >= SMALL_MODEL and recipe.adapter.method == "full":
        roomy = [each for each in roomy if each.candidate.setting.checkpointing == "full"]
    here = [each for each in roomy if not leaves_card(each)]
    same = [each for each in here if OPTIMIZER not in each.candidate.changes]
    best = _plainest(same) or fastest(here) or fastest(roomy) or fastest(plain) or fastest(judged)
    return best, "" if best else why_not(min(judged, key=lambda each: each.over_bytes))


def _plainest(judged: list[Judged]) -> Judged | None:
    """The fastest, or the plain backend's fastest where that is hardly slower."""
    best = fastest(judged)
    plain = fastest([each for each in judged if BACKEND not in each.candidate.changes])
    is_close = best is not None and plain is not None and plain.seconds <= HARDLY_SLOWER * best.seconds
    return plain if is_close else best


def _is_roomy(judged: Judged) -> bool:
    is_sure = judged.breakdown.standing.kind == "validated"
    return is_sure or judged.needed_bytes <= CAUTIOUS_SHARE * judged.verdict.usable_bytes


def _draft(situation: Situation, task: str, shape: ModelShape, method: str) -> Recipe:
    """The recipe before the planner has turned it."""
    is_text = task == "causal_lm"
    example = "data/identity.json" if is_text else "data/movie_sentiment/train.csv"
    longest = min(situation.max_length, shape.max_tokens or situation.max_length)
    adapter: dict[str, Any] = {"method": method}
    if method == "lora":
        adapter |= {"lora_r": 8, "lora_alpha": 16 if not is_text else 32, "lora_target_modules": "attention"}
    return Recipe.model_validate(
        {
            "task": task,
            "model": {"model_name_or_path": situation.model},
            "data": {"train_file": situation.train_file or example, "max_length": longest}
            | ({"eval_fraction": 0.02} if situation.rows >= 500 else {}),
            "adapter": adapter,
            "training": _training(situation, task, method),
            "backend": {"name": "multi_gpu" if situation.gpus > 1 else "single_gpu"},
            "hardware": {"device": "cuda", "gpu": situation.gpu, "gpus": situation.gpus},
        }
    )


def _training(situation: Situation, task: str, method: str) -> Mapping[str, Any]:
    rows, is_text = situation.rows, task == "causal_lm"
    batch = 16 if rows < FEW_ROWS else 32 if rows < MANY_ROWS else 64
    batch = max(batch, situation.gpus) // situation.gpus * situation.gpus
    rate = 1e-4 if method == "lora" and is_text else 2e-4 if method == "lora" else 2e-5
    epochs = 5 if rows < FEW_ROWS else 3 if rows < MANY_ROWS else 1
    return {
        "global_batch_size": batch,
        "num_train_epochs": epochs,
        "learning_rate": rate,
        "warmup": 0.1,
        "weight_decay": 0.0 if method == "lora" else 0.01,
        "save_steps": "0.5 epochs",
    }


def _nothing_fits(situation: Situation, rejected: list[str]) -> Problem:
    """What to type is one that does fit: more of the same cards, else fewer of a larger one."""
    cards = [(situation.gpu, situation.gpus * more) for more in (2, 4, 8) if situation.gpus * more <= 8]
    cards += [(name, count) for count in (1, 2, 4, 8) for name in LARGER_CARDS]
    fitting = (each for each in cards if _tried(replace(situation, gpu=each[0], gpus=each[1]))[0])
    found = next(fitting, None)
    line = f"launcher advise --model {situation.model} --rows {situation.rows}"
    return Problem(
        where=f"{situation.model} on {situation.gpus} x {situation.gpu}",
        what="no method fits: " + "; ".join(rejected),
        right="a larger card, more cards, a shorter --max-length or a smaller model"
        + ("" if found else f" (nor does any on 8 x {LARGER_CARDS[-1]})"),
        type=f"{line} --gpu {found[0]} --gpus {found[1]}" if found else f"{line} --gpu CARD --gpus N",
    )
