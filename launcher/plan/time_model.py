"""Seconds of one optimizer step, from a setting and a card: products, bytes moved, links, host memory.

Rates come from `hardware/gpus.csv`; what share of them is reached is stated here, once for all cards:
no coefficient belongs to a source, a model or a method. `benchmarks/time_model.py` compares the order
with published throughput.
"""

from dataclasses import dataclass

from launcher.hardware.catalog import Gpu
from launcher.memory.setting import Setting
from launcher.plan import links
from launcher.plan.optimizer_traffic import optimizer_bytes, trained_params
from launcher.plan.work import Work, work
from launcher.units import format_seconds

# Shares of the data sheet's figures that are reached.
# Products: cuBLAS in 16 bits on an A100 reaches 250 to 270 of 312 TFLOPS on large square sizes.
MATRIX_SHARE = 0.84
# Tiles of 128 x 128 are left partly empty by few tokens or narrow layers: n / (n + this).
MATRIX_TOKENS = 160
MATRIX_WIDTH = 256
# FlashAttention-2: 190 of 312 TFLOPS forward, 165 backward, causal, head size 128 (Dao 2023).
ATTENTION_SHARE = 0.55
# Kernels that read and write once reach 80 to 85 % of the memory's rate.
MEMORY_SHARE = 0.8
# One kernel's launch from Python, when the card has caught up with the host.
LAUNCH_S = 7e-6
# What a step costs beside: schedule, gradient norm's scalar, logging, the next batch's copy.
STEP_S = 0.004
# Products without tensor cores, as a share of the 16-bit rate, by compute capability (data sheets: A100 19.5
# of 312, H100 67 of 989, V100 15.7 of 125, 3090 35.6 of 71, T4 8.1 of 65).
FP32_SHARE = {(7, 0): 1 / 8, (7, 5): 1 / 5, (8, 0): 1 / 16, (9, 0): 1 / 15}
FP32_SHARE_OTHER = 1 / 2


@dataclass(frozen=True, kw_only=True)
class TimeTerm:
    """One part of a step, in seconds, with what it is made of."""

    name: str
    seconds: float
    formula: str


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """Seconds of one optimizer step. `tokens` and `rows` are those of all ranks together."""

    terms: tuple[TimeTerm, ...]
    tokens: int
    rows: int

    @property
    def seconds(self) -> float:
        """The whole step: what overlaps is left out of its term."""
        return sum(term.seconds for term in self.terms)

    @property
    def tokens_per_s(self) -> float:
        """Tokens of all ranks in a second, padding included."""
        return self.tokens / self.seconds

    @property
    def rows_per_s(self) -> float:
        """Rows of all ranks in a second."""
        return self.rows / self.seconds


def step_time(setting: Setting, gpu: Gpu) -> StepTime:
    """Predict one optimizer step of `accumulation_steps` micro batches on every rank."""
    done = work(setting)
    micro = _micro(setting, gpu, done)
    computed_s = sum(term.seconds for term in micro)
    times = setting.accumulation_steps
    terms = [TimeTerm(name=t.name, seconds=t.seconds * times, formula=t.formula) for t in micro]
    exposed = links.exposed_seconds(setting, gpu, computed_s)
    if exposed:
        terms.append(TimeTerm(name="communication", seconds=exposed, formula=links.FORMULA))
    terms.append(_optimizer(setting, gpu))
    if setting.sharding.offload_optimizer or setting.sharding.offload_parameters:
        terms.append(
            TimeTerm(name="offload", seconds=links.offload_seconds(setting, gpu), formula=links.OFFLOAD)
        )
    rows = setting.micro_batch * times * setting.num_ranks
    return StepTime(terms=tuple(terms), tokens=rows * setting.seq_len, rows=rows)


def _micro(setting: Setting, gpu: Gpu, done: Work) -> list[TimeTerm]:
    memory = gpu.memory_gb_per_s * 1e9 * MEMORY_SHARE
    rate = matrix_rate(setting, gpu)
    products = max(done.matrix_flops / rate, done.weight_bytes / memory)
    attention = done.attention_flops / (product_peak(setting, gpu) * ATTENTION_SHARE)
    moved = done.elementwise_bytes / memory
    adapters = done.adapter_bytes / memory + done.adapter_flops / rate
    busy = products + attention + moved + adapters + (done.loss_bytes + done.unpacked_bytes) / memory
    found = [
        TimeTerm(name="products", seconds=products, formula="2 x weights x tokens x passes / matrix rate"),
        TimeTerm(name="attention", seconds=attention, formula="4 s d x tokens x layers x passes / rate"),
        TimeTerm(name="element-wise", seconds=moved, formula="bytes of norms, sums, activations / bandwidth"),
        TimeTerm(name="adapter", seconds=adapters, formula="bytes of the pairs / bandwidth"),
        TimeTerm(
            name="loss", seconds=done.loss_bytes / memory, formula="bytes a logit x vocabulary x tokens"
        ),
        TimeTerm(name="unpacking", seconds=done.unpacked_bytes / memory, formula="packed + 2 bytes a weight"),
        TimeTerm(
            name="launches",
            seconds=max(0.0, done.num_launches * LAUNCH_S - busy),
            formula="kernels x launch, beyond what the card is busy with",
        ),
    ]
    return [term for term in found if term.seconds]


def product_peak(setting: Setting, gpu: Gpu) -> float:
    """The data sheet's operations a second in this arithmetic. bf16 below 8.0 is emulated: as fp32."""
    emulated = setting.precision == "bf16" and not gpu.has_bf16
    if setting.precision == "fp32" or emulated:
        return gpu.fp16_tflops * 1e12 * FP32_SHARE.get(gpu.compute_capability, FP32_SHARE_OTHER)
    return gpu.fp16_tflops * 1e12


def matrix_rate(setting: Setting, gpu: Gpu) -> float:
    """Operations a second that products reach with so many tokens and so narrow a layer."""
    tokens, width = setting.micro_batch * setting.seq_len, setting.shape.hidden_size
    filled = tokens / (tokens + MATRIX_TOKENS) * width / (width + MATRIX_WIDTH)
    return product_peak(setting, gpu) * MATRIX_SHARE * filled


def _optimizer(setting: Setting, gpu: Gpu) -> TimeTerm:
    memory = gpu.memory_gb_per_s * 1e9 * MEMORY_SHARE
    moved = 0.0 if setting.sharding.offload_optimizer else optimizer_bytes(setting)
    share = setting.num_ranks if setting.sharding.optimizer_states else 1
    seconds = moved * trained_params(setting) / share / memory + STEP_S
    return TimeTerm(name="optimizer", seconds=seconds, formula="bytes a trained element / bandwidth")


def step_words(seconds: float) -> str:
    """A step's seconds with three figures where there are fewer than ten of them."""
    return f"{seconds:.3g} s" if seconds < 10 else format_seconds(seconds)
