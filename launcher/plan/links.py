"""Seconds that a step waits for other cards or for host memory: links by topology, PCIe for offload."""

from dataclasses import dataclass

from launcher.hardware.catalog import Gpu
from launcher.memory.setting import Setting
from launcher.plan.optimizer_traffic import trained_params
from launcher.plan.work import WIDTH, trains_base

FORMULA = "(n - 1) / n x bytes / link + messages x latency, less what computation hides"
OFFLOAD = "bytes over PCIe + host memory traffic of the CPU's optimizer"
# One direction of x16, data sheet; GB/s.
PCIE_GB_PER_S = {"3.0 x16": 15.75, "4.0 x16": 31.5, "5.0 x16": 63.0}
# Units of a few hundred MB, copied into and out of the collective's buffers, move at about half of
# NVLink's one direction and 70 % of PCIe's; through the host (no peers) each byte crosses PCIe twice and
# host memory between: 35 %.
_NVLINK_SHARE, _PCIE_SHARE, _HOST_SHARE = 0.5, 0.7, 0.35
# A collective's start: NCCL over NVLink about 20 us, over PCIe 30, through the host 60.
_LATENCY_S = {"nvlink": 20e-6, "pcie": 30e-6, "host": 60e-6}
# Share of a transfer that computation on the same card hides: the first gather and the last reduction hide
# behind nothing, small units leave gaps.
_HIDDEN = 0.4
# Computation itself is slower beside collectives, which take processors and memory bandwidth, and each step
# waits for the slowest card.
_CONTENTION = 0.02
# CPU Adam reads and writes weight, gradient and two moments in fp32: 28 bytes; a socket's share for one
# card of about 40 GB/s.
_HOST_GB_PER_S = 40.0
_HOST_BYTES = 28
_PINNED_SHARE = 0.8


@dataclass(frozen=True, kw_only=True)
class Link:
    """How cards of one machine reach one another: `kind` nvlink, pcie or host; bytes a second one way."""

    kind: str
    bytes_per_s: float
    latency_s: float


def link(gpu: Gpu, num_ranks: int = 2) -> Link:
    """The slowest hop of a ring. A bridge joins two cards: four cross PCIe."""
    pcie = PCIE_GB_PER_S.get(gpu.pcie, 15.75) * 1e9
    bridged = gpu.p2p in ("nvlink", "bridge") and gpu.nvlink in ("yes", "bridge")
    if bridged and (gpu.nvlink == "yes" or num_ranks <= 2):
        return Link(
            kind="nvlink",
            bytes_per_s=gpu.nvlink_gb_per_s / 2 * 1e9 * _NVLINK_SHARE,
            latency_s=_LATENCY_S["nvlink"],
        )
    if gpu.p2p == "no":
        return Link(kind="host", bytes_per_s=pcie * _HOST_SHARE, latency_s=_LATENCY_S["host"])
    return Link(kind="pcie", bytes_per_s=pcie * _PCIE_SHARE, latency_s=_LATENCY_S["pcie"])


def exposed_seconds(setting: Setting, gpu: Gpu, computed_s: float) -> float:
    """What collectives add to one optimizer step of micro batches of `computed_s` seconds each."""
    if setting.num_ranks < 2:
        return 0.0
    way = link(gpu, setting.num_ranks)
    share = (setting.num_ranks - 1) / setting.num_ranks
    every, once = _gathered_bytes(setting), _reduced_bytes(setting)
    messages = setting.shape.num_layers + 1
    each_s = share * every / way.bytes_per_s + (2 * messages * way.latency_s if every else 0)
    once_s = share * once / way.bytes_per_s + messages * way.latency_s
    steps = setting.accumulation_steps
    slower = _CONTENTION * computed_s * steps
    return steps * _beyond(each_s, computed_s) + _beyond(once_s, computed_s) + slower


def _beyond(transfer_s: float, computed_s: float) -> float:
    """Transfers hide behind computation in part, and never behind more than there is."""
    return transfer_s - min(_HIDDEN * transfer_s, computed_s)


def _gathered_bytes(setting: Setting) -> float:
    """Bytes moved with every micro batch: divided weights forward and again backward, divided gradients."""
    moved = 0.0
    if setting.sharding.parameters:
        moved += 2 * _weights_on_the_wire(setting)
    if setting.sharding.gradients:
        moved += _gradient_bytes(setting)
    return moved


def _reduced_bytes(setting: Setting) -> float:
    """Bytes moved once a step: whole gradients summed (twice a reduction), divided weights sent round."""
    moved = 0.0 if setting.sharding.gradients else 2 * _gradient_bytes(setting)
    if setting.sharding.optimizer_states and not setting.sharding.parameters:
        moved += WIDTH[setting.weights_dtype if trains_base(setting) else "float32"] * trained_params(setting)
    return moved


def _gathered_width(setting: Setting) -> int:
    """Bytes of an element of divided weights and of their gradients as they travel.

    The type that a mixed precision gathers in, else the weights' own: this launcher's FSDP2 and ZeRO-3 have
    fp32 weights where those train, and autocast casts them after they are gathered.
    """
    return WIDTH[setting.gathered_dtype or setting.weights_dtype]


def _weights_on_the_wire(setting: Setting) -> float:
    shape, width = setting.shape, _gathered_width(setting)
    packed = {"nf4": 0.5625, "fp4": 0.5625, "int8": 1.0, "gptq4": 0.52, "gptq8": 1.02}.get(
        setting.quantisation
    )
    blocks = shape.num_layers * shape.block_params
    return blocks * (packed or width) + shape.root_params * width


def _gradient_bytes(setting: Setting) -> float:
    if not trains_base(setting):
        return 4.0 * trained_params(setting)
    width = _gathered_width(setting) if setting.sharding.parameters else WIDTH[setting.trainable_dtype]
    return float(width) * trained_params(setting)


def offload_seconds(setting: Setting, gpu: Gpu) -> float:
    """Weights in and gradients out over PCIe, and the CPU's own optimizer step."""
    pcie = PCIE_GB_PER_S.get(gpu.pcie, 15.75) * 1e9 * _PINNED_SHARE
    shards = setting.num_ranks if setting.sharding.optimizer_states else 1
    trained = trained_params(setting) / shards
    seconds = 0.0
    if setting.sharding.offload_optimizer:
        seconds += 4 * trained / pcie + _HOST_BYTES * trained / (_HOST_GB_PER_S * 1e9)
    if setting.sharding.offload_parameters:
        moved = 2 * _weights_on_the_wire(setting) / setting.num_ranks
        seconds += setting.accumulation_steps * moved / pcie
    return seconds
