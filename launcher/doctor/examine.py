"""Every check on one machine: what is found, what is mended, and how it is told."""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from launcher.doctor.check import CHECKS, Check, Finding, bad
from launcher.doctor.driver import read_driver
from launcher.doctor.patient import Patient
from launcher.doctor.probes import Probes
from launcher.hardware.platform_facts import find_platform, root_of
from launcher.process.gpus import visible_gpus
from launcher.process.on_platform import settle_platform
from launcher.recipe.load import LoadedRecipe
from launcher.redact import redact


@dataclass(frozen=True, kw_only=True)
class Examined:
    """One check with what it found."""

    check: str
    findings: tuple[Finding, ...]


def admit(
    environ: MutableMapping[str, str], loaded: LoadedRecipe | None, typed: str, settled: dict[str, str]
) -> Patient:
    """Start the slow probe, ask the driver meanwhile. `environ` is settled already."""
    probes = Probes.started(environ)
    return Patient(
        environ=environ,
        root=root_of(environ),
        platform=find_platform(environ),
        settled=settled,
        driver=read_driver(environ),
        probes=probes,
        visible=visible_gpus(environ, root_of(environ) / "dev"),
        loaded=loaded,
        typed=typed,
    )


def settle(environ: MutableMapping[str, str]) -> dict[str, str]:
    """What `launcher run` would set on this machine, set here too; returns what was not set before."""
    before = dict(environ)
    settle_platform(environ, dry=True)
    return {name: value for name, value in environ.items() if before.get(name) != value}


def checks() -> list[Check]:
    """All checks, in the order of their numbers."""
    return sorted(CHECKS, key=lambda check: (check.order, check.name))


def examine(patient: Patient) -> Iterator[Examined]:
    """One after the other; a check that fails itself is a finding, and the others go on."""
    for check in checks():
        try:
            found = tuple(check.examine(patient))
        except Exception as error:  # a check meets machines that nobody has seen
            words = f"the check failed: {type(error).__name__}: {error}"
            found = (bad(words, "an answer", typed="launcher doctor --json, and report it"),)
        if found:
            yield Examined(check=check.name, findings=tuple(map(_shown, found)))


def _shown(finding: Finding) -> Finding:
    """Without secrets: command lines of other processes and addresses of mirrors may hold some."""
    return Finding(
        status=finding.status,
        found=redact(finding.found),
        needed=redact(finding.needed),
        type=redact(finding.type),
    )


def fix(patient: Patient) -> Iterator[str]:
    """Mend what can be mended safely; a line for each thing done."""
    for check in checks():
        if check.fix is None:
            continue
        try:
            yield from check.fix(patient)
        except OSError as error:
            yield f"{check.name}: could not be mended: {error}"


def is_good(examined: Sequence[Examined]) -> bool:
    """Whether nothing would fail."""
    return not any(finding.status == "bad" for each in examined for finding in each.findings)


def lines(each: Examined) -> Iterator[str]:
    """As text: the status, the check, what was found; below it, what is needed and what to type."""
    for finding in each.findings:
        yield f"{finding.status:4}  {each.check:18} {finding.found}"
        if finding.needed:
            yield f"{'':25}needed: {finding.needed}"
        if finding.type:
            yield f"{'':25}type:   {finding.type}"


def as_json(examined: Sequence[Examined], fixed: Sequence[str]) -> dict[str, Any]:
    """For programs."""
    found = [{"check": each.check, **asdict(finding)} for each in examined for finding in each.findings]
    return {"ok": is_good(examined), "findings": found, "fixed": list(fixed)}
