"""Numbers with units: bytes and seconds to text and back."""

import re

from launcher.errors import BadValue, Problem

KIB, MIB, GIB = 2**10, 2**20, 2**30
_FACTORS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "k": KIB, "m": MIB, "g": GIB}
_FACTORS |= {"kib": KIB, "mib": MIB, "gib": GIB, "tib": 2**40, "tb": 10**12}


def format_bytes(num_bytes: float) -> str:
    """Bytes in the largest binary unit that keeps a figure before the point: `1.5 GiB`."""
    for factor, unit in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(num_bytes) >= factor:
            return f"{num_bytes / factor:.1f} {unit}"
    return f"{num_bytes:.0f} B"


def parse_bytes(text: str | int) -> int:
    """`64MiB`, `1.5 GB` or a plain number of bytes. Raises BadValue for anything else."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", str(text))
    if match and match.group(2).lower() in _FACTORS and match.group(1).count(".") < 2:
        return int(float(match.group(1)) * _FACTORS[match.group(2).lower()])
    raise BadValue(
        Problem(
            what=f"'{text}' is not a size",
            right="a number with B, KiB, MiB, GiB, KB, MB or GB",
            type="64MiB",
        )
    )


def format_seconds(seconds: float) -> str:
    """Seconds as people say them: `48 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
