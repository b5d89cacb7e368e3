"""Answers that only torch can give, from a process of its own: what crashes there crashes nothing here."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

_TIMEOUT_S = 180


@dataclass
class Probes:
    """The probe's sections by name; started at once, waited for when first asked. `given` replaces it."""

    given: Mapping[str, dict[str, Any]] | None = None
    _child: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    @classmethod
    def started(cls, environ: Mapping[str, str]) -> "Probes":
        """The probe, running."""
        # beside this package, whatever the working directory holds
        place = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [place, environ.get("PYTHONPATH", "")]))
        child = subprocess.Popen(
            [sys.executable, "-m", "launcher.doctor.probe_torch"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environ, "PYTHONPATH": path},
        )
        return cls(_child=child)

    @cached_property
    def sections(self) -> dict[str, dict[str, Any]]:
        """Every section that arrived; `end` says how the process ended where it did not end well."""
        if self.given is not None or self._child is None:
            return dict(self.given or {})
        try:
            out, err = self._child.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            out, err = self._child.communicate()
        found = dict(_sections(out))
        if self._child.returncode:
            last = (err.strip().splitlines() or ["no word"])[-1][:200]
            found["end"] = {"code": self._child.returncode, "error": last}
        return found

    def get(self, section: str) -> dict[str, Any]:
        """One section; where it never arrived, why."""
        found = self.sections.get(section)
        if found is not None:
            return found
        end = self.sections.get("end", {})
        return {
            "error": f"the probe ended with {end.get('code')}: {end.get('error')}" if end else "not probed"
        }


def _sections(out: str) -> list[tuple[str, dict[str, Any]]]:
    """A line a section; libraries print between them."""
    found = []
    for line in out.splitlines():
        if line.startswith('{"section": '):
            read = json.loads(line)
            found.append((read.pop("section"), read))
    return found
