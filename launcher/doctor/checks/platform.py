"""The rented machine, if it is one: what a run would set here, and a file that sets it in a shell too."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from launcher.doctor.check import CHECKS, Check, Finding, good, note
from launcher.doctor.patient import Patient

_FILE = "cache/env.sh"


def examine(patient: Patient) -> Iterator[Finding]:
    """One line for the platform, one for variables that the shell has not."""
    platform = patient.platform
    if platform is None:
        yield good("no rented platform that is known here: nothing is moved or set")
        return
    yield good(f"{platform.name}, by {', '.join(platform.evidence)}")
    if platform.data_disk is None:
        yield note("there is no data disk", "one, for weights, caches and runs", typed="df -h")
    elif patient.settled:
        names = ", ".join(sorted(patient.settled))
        yield note(
            f"{len(patient.settled)} variables are not set in this shell ({names})",
            "launcher run and prepare set them by themselves; other programs need them too",
            typed=f"launcher doctor --fix ; source {platform.data_disk / _FILE}",
        )


def fix(patient: Patient) -> Iterator[str]:
    """Write the variables as a file to source. Nothing is written outside the data disk."""
    if patient.platform is None or patient.platform.data_disk is None or not patient.settled:
        return
    file = patient.platform.data_disk / _FILE
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(patient.settled.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    Path(patient.settled.get("TMPDIR", file.parent)).mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    yield f"wrote {file}; type: source {file}"


CHECKS.register("platform", Check(name="platform", order=0, examine=examine, fix=fix))
