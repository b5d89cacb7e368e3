"""The backends' files as text, and `ds_configs/` and `accelerate_configs/` written from them.

`python -m launcher.backends.render` writes both folders; a test renders them again and compares.
"""

import json
import sys
from pathlib import Path
from typing import Any

from launcher.backends.options import BACKENDS, Backend

NUM_PROCESSES = 2
_BOOLEAN_LOOKALIKES = ("no", "yes", "on", "off", "true", "false", "null", "y", "n", "~", "")


def files() -> dict[str, str]:
    """Every shipped configuration file: path from the project's root to text."""
    rendered = {}
    for backend in BACKENDS:
        rendered[f"accelerate_configs/{backend.name}.yaml"] = _accelerate_text(backend)
        if backend.ds_config is not None:
            config = backend.ds_config(backend.options(name=backend.name))
            rendered[f"ds_configs/{backend.name}.json"] = json_text(config)
    return rendered


def json_text(config: dict[str, Any]) -> str:
    """A DeepSpeed JSON, indented, in the order it was built."""
    return json.dumps(config, indent=2) + "\n"


def yaml_text(config: dict[str, Any], notes: dict[str, str] | None = None) -> str:
    """A mapping of scalars and mappings of scalars; `notes` are comment lines above a key.

    Words that YAML 1.1 reads as booleans are quoted: `distributed_type: NO` would be false.
    """
    lines = []
    for key, value in config.items():
        lines += [f"# {note}" for note in [(notes or {}).get(key)] if note]
        if isinstance(value, dict):
            lines += [f"{key}:", *(f"  {inner}: {_scalar(item)}" for inner, item in value.items())]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def write(root: Path) -> list[Path]:
    """Write every file below the project's root; returns what was written."""
    written = []
    for name, text in files().items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _accelerate_text(backend: Backend) -> str:
    header = f"# {backend.summary}. Written by `make configs`; precision and batch belong to the recipe.\n"
    several = backend.max_ranks != 1
    notes = (
        {"num_processes": "one a card; `accelerate launch --num_processes N` overrides it"} if several else {}
    )
    return header + yaml_text(backend.accelerate_config(NUM_PROCESSES), notes)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.lower() in _BOOLEAN_LOOKALIKES:
        return f'"{value}"'
    return json.dumps(value) if isinstance(value, str) and not _is_plain(value) else str(value)


def _is_plain(text: str) -> bool:
    """Safe without quotes: nothing that YAML gives a meaning, not a number."""
    return (
        text.replace("_", "").replace("/", "").replace(".", "").replace("-", "").isalnum()
        and not text[0].isdigit()
    )


if __name__ == "__main__":
    for path in write(Path(__file__).resolve().parents[2]):
        print(path, file=sys.stdout)
