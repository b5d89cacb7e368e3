"""Every method's runs on one backend, in one pair of processes: imports cost more than steps.

accelerate launch --config_file accelerate_configs/zero2.yaml -m tests.adapters.method_cells FOLDER BACKEND
"""

import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

import launcher.train.rank as rank
from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, cell
from launcher.hardware.probe import machine as probe
from launcher.process.arguments import parse
from launcher.process.starter import read_starter
from launcher.train.job import Job
from tests.equivalence.cells import run_with_start

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
    "qlora": ("lora", ["lora_r=4", "lora_target_modules=all-linear", "load_in_4bit=true"]),
}
NUM_ROWS = 8
KINDS = ("classifier", "generator")


def names_of(backend: str) -> list[str]:
    """`kind-variant` of everything that runs on a backend: a prefix needs a decoder's cache."""
    found = []
    for kind in KINDS:
        for variant, (method, overrides) in VARIANTS.items():
            packed = "load_in_4bit=true" in overrides
            refused = isinstance(cell(method, backend, quantised=packed), Refused)
            if not refused and not (kind == "classifier" and method == "prefix"):
                found.append(f"{kind}-{variant}")
    return found


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


def main(folder: Path, backend: str, *only: str) -> None:
    """All runs of a backend, one after another, in one process group."""
    starter = read_starter(os.environ, parse(["--backend", backend]))
    world = rank.join(starter, probe("cpu"), needs_group=BACKENDS.get(backend).needs_group)
    leave = rank.leave
    rank.join = lambda *_, **__: world
    rank.leave = lambda *_, **__: world.barrier()
    for name in only or names_of(backend):
        run_with_start(parse(words(folder, backend, name)), starter, after=keep_end)
    leave(world, failed=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
