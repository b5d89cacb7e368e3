"""The values of a DeepSpeed JSON: their kinds, and what contradicts what. Keys are known good by then.

DeepSpeed takes some wrong ones without a word (`"false"` in quotes is true to it), and stops on every rank at
others: numbers and switches in quotes are read as what they say, with a notice. `auto` is worked out for the
recipe's facts and inside zero_optimization, nowhere else.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from launcher.backends.compare import dig
from launcher.errors import Problem
from launcher.registry import nearest

Place = Callable[[str], str]
ZERO = "zero_optimization"
_AT_LEAST_1 = {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}
_WHOLE: dict[str, int] = {
    **dict.fromkeys(sorted(_AT_LEAST_1), 1),
    "sequence_parallel_size": 1,
    f"{ZERO}.reduce_bucket_size": 1,
    f"{ZERO}.zero_hpz_partition_size": 0,
    **{
        f"{ZERO}.{name}": 0
        for name in (
            *("allgather_bucket_size", "sub_group_size", "stage3_prefetch_bucket_size"),
            *(
                "stage3_param_persistence_threshold",
                "stage3_max_live_parameters",
                "stage3_max_reuse_distance",
            ),
        )
    },
    **{f"{ZERO}.{block}.buffer_count": 1 for block in ("offload_param", "offload_optimizer")},
    "fp16.initial_scale_power": 0,
    "fp16.loss_scale_window": 1,
    "fp16.hysteresis": 1,
    "fp16.min_loss_scale": 0,
}
_NUMBER: dict[str, tuple[float, float]] = {
    "gradient_clipping": (0, float("inf")),
    "gradient_predivide_factor": (0, float("inf")),
    "fp16.loss_scale": (0, float("inf")),
    f"{ZERO}.offload_optimizer.ratio": (0, 1),
    f"{ZERO}.offload_optimizer.cpuadam_cores_perc": (0, 1),
}
_SWITCHES = frozenset(
    {
        *("zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "wall_clock_breakdown"),
        *("memory_breakdown", "dump_state", "prescale_gradients", "disable_allgather", "disable_python_gc"),
        *("dataloader_drop_last", "fp16.enabled", "fp16.auto_cast", "bf16.enabled", "torch_autocast.enabled"),
        *("fp16.consecutive_hysteresis", "bf16.check_grad_overflow", "bf16.immediate_grad_update"),
        *(f"{ZERO}.{block}.pin_memory" for block in ("offload_param", "offload_optimizer")),
        *(f"{ZERO}.offload_optimizer.{name}" for name in ("fast_init", "pipeline_read", "pipeline_write")),
        *(
            f"{ZERO}.{name}"
            for name in (
                *("contiguous_gradients", "reduce_scatter", "allgather_partitions", "overlap_comm"),
                *("load_from_fp32_weights", "cpu_offload", "cpu_offload_param", "ignore_unused_parameters"),
                *("round_robin_gradients", "zero_quantized_weights", "zero_quantized_gradients"),
                "stage3_gather_16bit_weights_on_model_save",
                "stage3_gather_fp16_weights_on_model_save",
                "memory_efficient_linear",
            )
        ),
    }
)
_ONE_OF = {
    "communication_data_type": ("fp16", "bf16", "fp32"),
    "seq_parallel_communication_data_type": ("fp16", "bf16", "fp32"),
}
_AUTO = frozenset({*_AT_LEAST_1, "gradient_clipping", "fp16.enabled", "bf16.enabled"})
_ADAM = frozenset(
    ["lr", "betas", "eps", "weight_decay", "bias_correction", "adam_w_mode", "torch_adam", "amsgrad"]
)
_MOST = 1e18  # beyond any count of elements; floats have no whole numbers there
_ADAM_OTHER_NAMES = {"learning_rate": "lr", "beta": "betas", "epsilon": "eps", "adam_epsilon": "eps"}


def without_quotes(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The content with `"8"` as 8 and `"true"` as true where such are wanted; a line about each."""
    found, notices = copy.deepcopy(dict(config)), []
    for key in (*_WHOLE, *_NUMBER, *_SWITCHES, f"{ZERO}.stage"):
        home, _, leaf = key.rpartition(".")
        block = dig(found, home) if home else found
        value = block.get(leaf) if isinstance(block, dict) else None
        meant = _meant(key, value) if isinstance(value, str) else None
        if meant is not None and isinstance(block, dict):
            block[leaf] = meant
            shown = str(meant).lower() if isinstance(meant, bool) else f"{meant}"
            notices.append(f"{key} stands in quotes: read as {shown}")
    return found, notices


def _meant(key: str, text: str) -> bool | int | float | None:
    """The number or switch that a text is, None where it is none that the key takes."""
    if key in _SWITCHES:
        return {"true": True, "false": False}.get(text.strip().lower())
    number = _number(text)
    if number is None or abs(number) > _MOST:
        return None
    return int(number) if number == int(number) else number


def wrong_values(config: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    """Every value that its key cannot take; `place` gives `file:line` of a key."""
    for key in (*_WHOLE, *_NUMBER, *_SWITCHES, *_ONE_OF):
        value = dig(config, key)
        if value is None or (value == "auto" and (key in _AUTO or key.count(".") == 1 and ZERO in key)):
            continue
        if wanted := _wanted(key, value):
            yield _wrong(place(key.rpartition(".")[2]), key, value, *wanted)
    yield from _optimizer(config, place)


def _wanted(key: str, value: Any) -> tuple[str, str] | None:
    """What the key takes, and what to type for what was meant; None where the value is good."""
    number = _number(value)
    if key in _SWITCHES:
        meant = "false" if str(value).strip().lower() in ("false", "no", "off", "0") else "true"
        return None if isinstance(value, bool) else ("true or false, without quotes", meant)
    if key in _ONE_OF:
        names = _ONE_OF[key]
        close = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(str(value), names[0])
        return None if value in names else (f"one of {', '.join(names)}", f'"{close}"')
    if key in _WHOLE:
        low, is_whole = _WHOLE[key], number is not None and number == number // 1 < _MOST
        good = number is not None and is_whole and number >= low
        meant = f"{int(number):d}" if good and number is not None else _suggested(key)
        right = f"a whole number from {low}, without quotes"
        return None if good and not isinstance(value, str) else (right, meant)
    low_, high = _NUMBER[key]
    good = number is not None and low_ <= number <= high
    right = f"a number from {low_:g}" + (f" to {high:g}" if high < float("inf") else "") + ", without quotes"
    meant = f"{number:g}" if good and number is not None else "1.0"
    return None if good and not isinstance(value, str) else (right, meant)


def _suggested(key: str) -> str:
    if key in _AUTO or key.startswith(ZERO) and key.count(".") == 1:
        return '"auto"'
    return str(max(_WHOLE[key], 1))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if found == found else None  # not a NaN


def _wrong(where: str, key: str, value: Any, right: str, meant: str) -> Problem:
    shown = '"auto"' if value == "auto" else repr(value)[:60]
    what = f"{key} is {shown}" + (", and nobody works that out" if value == "auto" else "")
    return Problem(where=where, what=what, right=right, type=f'"{key.rpartition(".")[2]}": {meant}')


def _optimizer(config: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    """Names of Adam's parameters that DeepSpeed's own would stop at."""
    block = config.get("optimizer")
    params = dig(config, "optimizer.params")
    kind = str(block.get("type", "AdamW")).lower() if isinstance(block, Mapping) else ""
    if kind not in ("adam", "adamw") or not isinstance(params, Mapping):
        return
    for name in params:
        if name not in _ADAM:
            close = _ADAM_OTHER_NAMES.get(str(name)) or nearest(str(name), _ADAM)
            yield Problem(
                where=place(str(name)),
                what=f"optimizer.params has no '{name}'",
                right=f"did you mean {close}?" if close else f"one of {', '.join(sorted(_ADAM))}",
                type=str(close or f"remove {name}"),
            )


def contradictions(config: Mapping[str, Any], stage: int, place: Place) -> Iterator[Problem]:
    """What DeepSpeed refuses, or takes for something else than it says."""
    on = [name for name in ("fp16", "bf16") if dig(config, f"{name}.enabled") is True]
    if len(on) == 2:
        yield Problem(
            where=place("bf16"),
            what="fp16 and bf16 are both enabled",
            right='one precision; "auto" in both leaves it to the recipe',
            type='"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}',
        )
    yield from _offload(config, stage, place)
    if stage == 3 and dig(config, f"{ZERO}.stage3_gather_fp16_weights_on_model_save") is not None:
        yield _old(
            place, "stage3_gather_fp16_weights_on_model_save", "stage3_gather_16bit_weights_on_model_save"
        )
    yield from _triangle(config, place)


def _offload(config: Mapping[str, Any], stage: int, place: Place) -> Iterator[Problem]:
    for old, new in (("cpu_offload", "offload_optimizer"), ("cpu_offload_param", "offload_param")):
        if dig(config, f"{ZERO}.{old}") is True:
            yield _old(place, old, new, '{"device": "cpu", "pin_memory": true}')
    for block in ("offload_param", "offload_optimizer"):
        device = dig(config, f"{ZERO}.{block}.device")
        if device not in ("cpu", "nvme"):
            continue
        if block == "offload_param" and stage < 3:
            yield Problem(
                where=place(block),
                what=f"stage {stage} keeps parameters whole on every card: offload_param needs stage 3",
                right="offload_optimizer beside stage 2, or stage 3",
                type='"offload_optimizer": {"device": "cpu"}, or "stage": 3',
            )
        elif device == "nvme" and stage < 3:
            yield Problem(
                where=place(block),
                what=f"a disk (nvme) is for stage 3, the stage is {stage}",
                right="stage 3, or host memory",
                type='"stage": 3, or "device": "cpu"',
            )
        elif device == "nvme" and not dig(config, f"{ZERO}.{block}.nvme_path"):
            yield Problem(
                where=place(block),
                what=f"{block} goes to a disk, and no nvme_path says where",
                right="a folder on a fast local disk",
                type='"device": "nvme", "nvme_path": "nvme_offload"',
            )


def _old(place: Place, old: str, new: str, value: str = "...") -> Problem:
    return Problem(
        where=place(old),
        what=f"{old} is an old name",
        right=f"it is called {new} now",
        type=f'"{new}": {value if value != "..." else "true"}',
    )


def _triangle(config: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    """Three batch figures that no whole number of cards satisfies."""
    names = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    total, micro, steps = (_positive(config.get(name)) for name in names)
    if total is None or micro is None:
        return
    each = micro * (steps or 1)
    if total % each:
        product = f"{micro} x {steps}" if steps else f"{micro}"
        yield Problem(
            where=place("train_batch_size"),
            what=f"train_batch_size {total} is no multiple of {product} (rows of one card"
            + (
                " x accumulation): no number of cards makes it" if steps else "): no number of cards makes it"
            ),
            right='"auto" for the three: they are worked out from the recipe\'s global_batch_size',
            type=", ".join(f'"{name}": "auto"' for name in names),
        )


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def without_effect(config: Mapping[str, Any], stage: int) -> Iterator[str]:
    """Keys of stage 3 beside another stage."""
    zero = config.get(ZERO)
    if stage < 3 and isinstance(zero, Mapping):
        idle = [name for name in zero if str(name).startswith("stage3_")]
        if idle:
            yield f"{', '.join(idle)}: without effect, the stage is {stage}"
