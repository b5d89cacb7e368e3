"""How far each figure of a plan is to be trusted, in words."""

from launcher.hardware.catalog import Gpu
from launcher.memory.breakdown import Standing

# benchmarks/results/time_model-*.json: 192 published runs on A100 80 GB cards (full, LoRA, QLoRA and GPTQ,
# one process and FSDP): Kendall's tau and errors of tokens a second. Some coefficients were set after a look
# at these rows, so the figures are in-sample; of ms-swift's 72 rows, which were not, tau is 0.80.
_TIME_CARD, _TIME_ROWS, _TIME_TAU, _TIME_P90 = "A100", 192, 0.83, 0.14


def in_words(standing: Standing) -> str:
    """`validated on n measurements, p90 x %`, or `derived, not validated`."""
    note = f" ({standing.note})" if standing.note else ""
    if standing.kind == "validated":
        return f"validated on {standing.num_measurements} measurements, p90 {standing.p90_error:.1%}{note}"
    return f"derived, not validated{note}"


def of_time(gpu: Gpu, *, is_decoder: bool, backend: str, recomputes: bool, precision: str) -> str:
    """Where the time model was compared with published runs: decoders on A100s, checkpointed, in 16 bits."""
    compared = is_decoder and recomputes and precision != "fp32" and backend in ("single_gpu", "fsdp2")
    if compared and _TIME_CARD.lower() in gpu.name:
        return (
            f"set and compared on {_TIME_ROWS} published runs on {_TIME_CARD} cards (in-sample: p90 "
            f"{_TIME_P90:.0%}, order agrees with tau {_TIME_TAU})"
        )
    return "derived from the data sheet, not validated"
