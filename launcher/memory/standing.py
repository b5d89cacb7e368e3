"""How far an estimate is to be trusted: measured for this kind of run, or derived only.

`standings.json` holds numbers alone; `benchmarks/memory_accuracy.py CSV --write-standings` renews it.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path

from launcher.memory.breakdown import Standing
from launcher.memory.setting import Setting

FILE = Path(__file__).with_name("standings.json")
# method, backend, checkpointing, encoder or decoder
Key = tuple[str, str, str, str]
FEWEST = 5


def key_of(setting: Setting) -> Key:
    """What kind of run a setting is."""
    kind = setting.sharding_kind
    backend: str = kind if kind != "none" else ("single" if setting.num_ranks == 1 else "ddp")
    if setting.sharding.offload_optimizer or setting.sharding.offload_parameters:
        backend += "_offload"
    method = setting.method if setting.quantisation == "none" else f"{setting.method}_{setting.quantisation}"
    return method, backend, setting.checkpointing, "decoder" if setting.shape.is_decoder else "encoder"


@functools.cache
def _known() -> dict[str, tuple[int, float]]:
    if not FILE.exists():
        return {}
    return {key: (int(n), float(p90)) for key, (n, p90) in json.loads(FILE.read_text("utf-8")).items()}


def standing_of(setting: Setting) -> Standing:
    """Validated where at least five measurements of this kind are held, else derived."""
    key = "/".join(key_of(setting))
    found = _known().get(key)
    if found is None or found[0] < FEWEST:
        return Standing(kind="derived", note=f"no measurements of {key}" if not found else f"few: {found[0]}")
    return Standing(kind="validated", num_measurements=found[0], p90_error=found[1], note=key)


def write(found: Mapping[Key, tuple[int, float]]) -> None:
    """Renew the file."""
    rows = {"/".join(key): [n, round(p90, 4)] for key, (n, p90) in sorted(found.items())}
    FILE.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    _known.cache_clear()
