"""The suite's material, and a backend's cells as one pair of processes, by the command that people type."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from launcher.backends.operators import ASYNC_IO, is_compiled
from launcher.backends.options import BACKENDS
from launcher.hardware.ports import free_port
from tests import tiny
from tests.launching import trained

SKIPPED = {"model_parallel": "one CPU is one device: there is nothing to spread layers over"}
if not is_compiled(ASYNC_IO, os.environ):
    SKIPPED["zero3_nvme"] = (
        "DeepSpeed's disk access is not compiled here, which takes minutes. "
        "Type: sudo apt-get install -y libaio-dev && python -m launcher.backends.build_torch async_io"
    )
BACKEND_NAMES = [backend.name for backend in BACKENDS]


def write_material(folder: Path) -> Path:
    """The tiny models, the rows, and the two recipes."""
    tiny.write_bert(folder / "bert", initializer_range=0.05)
    tiny.write_bert(folder / "bert-dropout", dropout=0.1, initializer_range=0.05)
    tiny.write_llama(folder / "llama", initializer_range=0.05)
    if "zero3_nvme" not in SKIPPED:
        wide = {"hidden_size": 256, "intermediate_size": 2048, "initializer_range": 0.05}
        tiny.write_bert(folder / "classifier-wide", **wide)
        tiny.write_llama(folder / "generator-wide", **wide)
    tiny.write_csv(folder / "train.csv", 59)
    tiny.write_csv(folder / "eval.csv", 23, seed=5)
    tiny.write_instructions(folder / "instructions.json", 59)
    for name in ("classifier", "generator"):
        text = (Path(__file__).with_name(f"{name}.yaml")).read_text()
        (folder / f"{name}.yaml").write_text(text.replace("MATERIAL", str(folder)))
    return folder


def run_cells(material: Path, backend: str, cells: Sequence[str] = ()) -> str:
    """Run these cells of a backend, else all; what was said. The runs lie below `material/runs`."""
    processes = 1 if BACKENDS.get(backend).max_ranks == 1 else 2
    tool = [sys.executable, "-m", "accelerate.commands.launch"]
    tool += ["--config_file", f"accelerate_configs/{backend}.yaml", "--num_processes", str(processes)]
    tool += ["--main_process_port", str(free_port())]
    # one process by python itself: it keeps to the one thread that tests ask for
    tool = tool if processes > 1 else [sys.executable]
    command = [*tool, "-m", "tests.equivalence.cells", str(material), backend, *cells]
    return trained(command, timeout_s=900).stderr
