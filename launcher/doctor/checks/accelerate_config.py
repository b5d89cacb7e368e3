"""A default configuration in the person's home, which a bare `accelerate launch` reads without a word."""

from collections.abc import Iterator
from pathlib import Path

from launcher.doctor.check import CHECKS, Check, Finding, good, note
from launcher.doctor.patient import Patient

_NAMES = ("default_config.yaml", "default_config.yml", "default_config.json")
_SHOWN = ("distributed_type", "num_processes", "mixed_precision", "use_cpu")


def examine(patient: Patient) -> Iterator[Finding]:
    """A note: it does not touch `launcher run`, which always names its own file."""
    found = [path for folder in _folders(patient) for name in _NAMES if (path := folder / name).is_file()]
    if not found:
        yield good("no default configuration that a bare `accelerate launch` would read")
    for path in found:
        yield note(
            f"{path} ({_says(path)}) changes every `accelerate launch` that names no file",
            "launcher run names its own file; so should you",
            typed=f"accelerate launch --config_file accelerate_configs/single_gpu.yaml ...   (or: mv {path} "
            f"{path}.off)",
        )


def _folders(patient: Patient) -> list[Path]:
    """Accelerate looks below HF_HOME, else below the cache in the home."""
    home = patient.platform.home if patient.platform else Path(patient.environ.get("HOME") or Path.home())
    cache = Path(patient.environ.get("XDG_CACHE_HOME") or home / ".cache")
    places = [Path(patient.environ["HF_HOME"])] if patient.environ.get("HF_HOME") else []
    return list(dict.fromkeys(place / "accelerate" for place in (*places, cache / "huggingface")))


def _says(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line.strip().rstrip(",") for line in lines if line.strip().strip('"').startswith(_SHOWN)]
    return ", ".join(told) or "of no known key"


CHECKS.register("accelerate_config", Check(name="accelerate config", order=22, examine=examine))
