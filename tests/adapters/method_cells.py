"""Every method's runs: of each backend in one pair of processes, all of them forks of one that has imported.

    python -m tests.adapters.method_cells FOLDER zero2=classifier-ia3,generator-lora-dora single_gpu=...

Those of freezing by epoch and of the optimizers are among them, as full fine-tuning with one thing changed.
"""

import os
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

import launcher.train.rank as rank
from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, cell
from launcher.hardware.probe import machine as probe
from launcher.optim.table import works_on
from launcher.process.arguments import parse
from launcher.process.starter import read_starter
from launcher.train.job import Job
from tests.equivalence.cells import run_with_start
from tests.faults import warm

VARIANTS = {
    "bottleneck-pfeiffer": ("bottleneck", ["bottleneck_size=8", "bottleneck_placement=pfeiffer"]),
    "bottleneck-houlsby": ("bottleneck", ["bottleneck_size=8"]),
    "ia3": ("ia3", []),
    "prompt": ("prompt", ["num_virtual_tokens=6"]),
    "p_tuning": ("p_tuning", ["num_virtual_tokens=6", "encoder_hidden_size=16"]),
    "prefix": ("prefix", ["num_virtual_tokens=6"]),
    "prefix-projected": ("prefix", ["num_virtual_tokens=6", "prefix_projection=true"]),
    "lora-dora": ("lora", ["lora_r=4", "use_dora=true"]),
    "lora-rs": ("lora", ["lora_r=4", "use_rslora=true", "lora_target_modules=mlp"]),
    "lora-plus": ("lora", ["lora_r=4", "loraplus_lr_ratio=4", "learning_rate=1e-2"]),
    "full-layerwise": ("full", ["layerwise_lr_decay=0.8", "learning_rate=4e-3"]),
    "full-by-epoch": ("full", ["freeze.schedule={0: head, 1: all}", "learning_rate=4e-3"]),
    "full-sgd": ("full", ["optim=sgd", "learning_rate=1.0"]),
    "full-adafactor": ("full", ["optim=adafactor", "learning_rate=3e-2"]),
    "full-8bit": ("full", ["optim=adamw_8bit", "learning_rate=4e-3"]),
    "full-paged-8bit": ("full", ["optim=paged_adamw_8bit", "learning_rate=4e-3"]),
    "qlora": ("lora", ["lora_r=4", "lora_target_modules=all-linear", "load_in_4bit=true"]),
}
NUM_ROWS = 8
KINDS = ("classifier", "generator")
BACKENDS_X2 = (
    *("multi_gpu", "zero1", "zero2", "zero2_offload", "zero3", "zero3_offload"),
    *("fsdp2", "fsdp2_offload"),
)


def runs_on(backend: str, kind: str, variant: str) -> bool:
    """Whether it is not refused there; a prefix needs a decoder's cache."""
    method, overrides = VARIANTS[variant]
    packed = "load_in_4bit=true" in overrides
    optim = next((word.partition("=")[2] for word in overrides if word.startswith("optim=")), "adamw_torch")
    refused = isinstance(cell(method, backend, quantised=packed), Refused) or not works_on(optim, backend)
    return not refused and not (kind == "classifier" and method == "prefix")


def names_of(backend: str) -> list[str]:
    """`kind-variant` of everything that runs on a backend."""
    pairs = [(kind, variant) for kind in KINDS for variant in VARIANTS]
    return [f"{kind}-{variant}" for kind, variant in pairs if runs_on(backend, kind, variant)]


def tenth(seed: int) -> list[tuple[str, str]]:
    """Of all pairs of backend and name about a tenth, drawn by the seed: every variant once, every backend.

    Those that few backends run choose first, each among the backends with the fewest so far.
    """
    draw = random.Random(seed)
    left: dict[str, int] = dict.fromkeys(BACKENDS_X2, 0)
    found = []
    for variant in sorted(VARIANTS, key=lambda each: (len(_places(each)), draw.random())):
        places = _places(variant)
        fewest = min(left[backend] for backend, _ in places)
        backend, name = draw.choice([place for place in places if left[place[0]] == fewest])
        left[backend] += 1
        found.append((backend, name))
    return sorted(found)


def _places(variant: str) -> list[tuple[str, str]]:
    return [
        (backend, f"{kind}-{variant}")
        for backend in BACKENDS_X2
        for kind in KINDS
        if runs_on(backend, kind, variant)
    ]


def words(folder: Path, backend: str, name: str) -> list[str]:
    """The command line of one run."""
    kind, _, variant = name.partition("-")
    method, overrides = VARIANTS[variant]
    start = ["--recipe", str(folder / f"{kind}.yaml"), "--name", f"{backend}-{name}", "--backend", backend]
    rate = [] if any(word.startswith("learning_rate=") for word in overrides) else ["learning_rate=3e-2"]
    return [*start, "--new", f"adapter={method}", "max_steps=8", *rate, *overrides]


def keep_end(job: Job) -> None:
    """Write the trained tensors as they are after the last step; alone, the logits of a few rows too."""
    state = {name.removeprefix("model."): held["weight"].cpu().clone() for name, held in job.strategy.state()}
    if not job.world.is_first:
        return
    save_file(state, job.folder / "end.safetensors")
    if job.world.num_ranks == 1:
        rows = _rows(job)
        seen = _logits(job, rows)
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
        save_file({"logits": seen, "rows": padded}, job.folder / "logits.safetensors")


def _rows(job: Job) -> list[torch.Tensor]:
    ends = job.store.offsets
    return [torch.tensor(job.store.input_ids[ends[row] : ends[row + 1]]).long() for row in range(NUM_ROWS)]


@torch.no_grad()
def _logits(job: Job, rows: list[torch.Tensor]) -> torch.Tensor:
    """One row after another, without padding: the last position's, or a classifier's own."""
    job.strategy.module.eval()
    found = []
    for row in rows:
        batch = row.unsqueeze(0)
        whole = job.module.model(input_ids=batch, attention_mask=torch.ones_like(batch)).logits
        found.append(whole.flatten(0, -2)[-1].float())
    return torch.stack(found)


def live(folder: Path, backend: str, names: Iterable[str]) -> int:
    """A rank's whole life: these runs of a backend, one after another, in one process group."""
    starter = read_starter(os.environ, parse(["--backend", backend]))
    world = rank.join(starter, probe("cpu"), needs_group=BACKENDS.get(backend).needs_group)
    leave = rank.leave
    rank.join = lambda *_, **__: world
    rank.leave = lambda *_, **__: world.barrier()
    for name in names:
        run_with_start(parse(words(folder, backend, name)), starter, after=keep_end)
    leave(world, failed=False)
    return 0


def run_cells(folder: Path, backend: str, names: Sequence[str]) -> bool:
    """These runs in forks of this process, two where the backend takes two; whether all went well.

    What they said is in `folder / BACKEND.log`.
    """
    ended = warm.run_ranks(
        [],
        num_ranks=1 if BACKENDS.get(backend).max_ranks == 1 else 2,
        log=folder / f"{backend}.log",
        life=lambda: live(folder, backend, names),
        timeout_s=300.0 + 60.0 * len(names),
    )
    return ended.succeeded


def main(folder: Path, wanted: Sequence[str]) -> int:
    """Backend after backend; one that fails does not keep the others from running."""
    warm.warm_up()
    failed = 0
    for each in wanted:
        backend, _, names = each.partition("=")
        failed += not run_cells(folder, backend, names.split(","))
    return failed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
