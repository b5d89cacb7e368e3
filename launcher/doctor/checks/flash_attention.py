"""FlashAttention 2 by architecture: Ampere and newer; torch's sdpa has its kernels without the package."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient

_LEAST = (8, 0)
_INSTEAD = "model.attn_implementation=sdpa"


def examine(patient: Patient) -> Iterator[Finding]:
    """Bad only where the recipe asks for the package."""
    found = patient.probes.get("flash_attention")
    is_asked = bool(patient.recipe and patient.recipe.model.attn_implementation == "flash_attention_2")
    old = [card for card in patient.driver.cards if (0, 0) < card.capability < _LEAST]
    if is_asked and (old or not patient.driver.cards):
        where = (
            f"{old[0].name} has capability {old[0].capability[0]}.{old[0].capability[1]}"
            if old
            else "no card"
        )
        yield bad(where, "8.0 (Ampere) or newer for flash_attention_2", typed=_INSTEAD)
    elif is_asked and ("absent" in found or "error" in found):
        yield bad(
            f"flash-attn: {found.get('error', 'not installed')}",
            "the package, built for this torch",
            typed=f"{_INSTEAD}   (or: pip install flash-attn --no-build-isolation)",
        )
    elif "error" in found and found["error"] != "not probed":
        yield note(f"flash-attn is installed and fails: {found['error']}", typed="pip uninstall flash-attn")
    elif "absent" in found or "error" in found:
        yield good("not installed, not needed: attn_implementation=auto takes torch's sdpa")
    else:
        yield good(f"flash-attn {found['version']}")


CHECKS.register("flash_attention", Check(name="flash attention", order=14, examine=examine))
