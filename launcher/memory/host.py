"""Host memory of all ranks on one machine: while loading, and while training; the worse of the two."""

from dataclasses import dataclass

from launcher.memory.breakdown import Term
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, sizes_of

MIB = 1 << 20
# Resident memory of a process that has imported torch and transformers and read nothing yet.
PROCESS_BYTES = 700 * MIB
# A loading worker shares its parent's pages; its own: interpreter state and the batches on their way.
WORKER_BYTES = 150 * MIB
# Reading a safetensors file maps it; what is touched of one tensor at a time is copied.
SHARD_BUFFER_BYTES = 512 * MIB


def host_memory(setting: Setting) -> tuple[Term, ...]:
    """Bytes of the whole machine at its worst moment, a line a term; every rank loads a copy of its own."""
    sizes = sizes_of(setting)
    base = [_term("processes", setting.num_ranks * PROCESS_BYTES, "ranks x 700 MiB")]
    loading = [*base, *_loading(setting, sizes)]
    training = [*base, *_training(setting, sizes)]
    return tuple(max(loading, training, key=lambda terms: sum(term.num_bytes for term in terms)))


def _term(name: str, num_bytes: float, formula: str) -> Term:
    return Term(name=name, num_bytes=int(num_bytes), formula=formula)


def _loading(setting: Setting, sizes: Sizes) -> list[Term]:
    copy = setting.shape.num_params * sizes.weight_bytes
    return [
        _term("weights while loading", setting.num_ranks * copy, "ranks x P x dtype"),
        _term("reading buffers", setting.num_ranks * SHARD_BUFFER_BYTES, "ranks x 512 MiB"),
    ]


def _training(setting: Setting, sizes: Sizes) -> list[Term]:
    terms = []
    facts = setting.sharding
    on_disk = setting.backend.endswith("nvme")
    if facts.offload_optimizer and not on_disk:
        states = (4 if setting.sharding_kind.startswith("zero") else 0) + 8
        terms.append(_term("offloaded states", states * sizes.trained, f"{states} p, pinned, all ranks"))
        terms.append(_term("offloaded gradients", 4 * sizes.trained, "4 p, pinned, all ranks"))
    if facts.offload_parameters and not on_disk:
        held = setting.shape.num_params * sizes.weight_bytes
        terms.append(_term("offloaded weights", held, "P x dtype, pinned, all ranks"))
    if on_disk:
        terms.append(_term("disk buffers", setting.num_ranks * (1 << 30), "ranks x 1 GiB, pinned"))
    if setting.checkpoint_copy:
        terms.append(_term("checkpoint copy", 12 * sizes.trained, "12 p, pinned on a card, all ranks"))
    if setting.num_workers:
        count = setting.num_ranks * setting.num_workers
        terms.append(_term("loading workers", count * WORKER_BYTES, "ranks x workers x 150 MiB"))
    return terms


@dataclass(frozen=True, kw_only=True)
class HostVerdict:
    """Whether the machine's main memory is enough, in bytes."""

    fits: bool
    needed_bytes: int
    limit_bytes: int


def host_fits(terms: tuple[Term, ...], limit_bytes: int) -> HostVerdict:
    """Against what this machine may use: `hardware.limits.host_memory_bytes`, control groups included."""
    needed = sum(term.num_bytes for term in terms)
    return HostVerdict(fits=needed <= limit_bytes, needed_bytes=needed, limit_bytes=limit_bytes)
