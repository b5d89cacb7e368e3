"""What a check is, what it finds, and where checks are registered: one file each in `checks/`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from launcher.doctor.patient import Patient
from launcher.registry import Registry

Status = Literal["good", "note", "bad"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line. `bad`: something would fail; `note`: it works, and here is what to know."""

    status: Status
    found: str
    needed: str = ""
    type: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing to look at. `order` sorts; `fix` mends what can be mended safely, and says what it did."""

    name: str
    order: int
    examine: Callable[[Patient], Iterable[Finding]]
    fix: Callable[[Patient], Iterable[str]] | None = None


CHECKS: Registry[Check] = Registry("check", "launcher.doctor.checks")


def good(found: str, needed: str = "") -> Finding:
    """All is well."""
    return Finding(status="good", found=found, needed=needed)


def note(found: str, needed: str = "", *, typed: str = "") -> Finding:
    """It works, and there is something to know."""
    return Finding(status="note", found=found, needed=needed, type=typed)


def bad(found: str, needed: str, *, typed: str) -> Finding:
    """Something would fail."""
    return Finding(status="bad", found=found, needed=needed, type=typed)
