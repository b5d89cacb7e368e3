"""The hub or a mirror, and the hosts of its large files; bad only where something must come from there."""

from collections.abc import Iterator
from dataclasses import replace

from launcher.doctor.cached import is_here
from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient
from launcher.doctor.reach import Hosts, advise, from_modelscope, reach
from launcher.models import modelscope


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing is asked where HF_HUB_OFFLINE forbids it."""
    environ, recipe = patient.environ, patient.recipe
    is_needed = recipe is not None and not is_here(recipe.model)
    if environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        yield _offline(patient, is_needed=is_needed)
        return
    hosts = Hosts(modelscope=modelscope.endpoint(environ))
    if endpoint := environ.get("HF_ENDPOINT"):
        hosts = replace(hosts, hub=endpoint.rstrip("/"))
    if patient.platform is not None:
        hosts = replace(hosts, mirror=patient.platform.mirror)
    answers = reach(hosts)
    found = advise(answers, hosts, environ, patient.platform)
    if found.works:
        yield good(found.found)
    elif is_needed and recipe and (other := from_modelscope(answers, recipe.model, patient.typed)):
        yield note(f"{found.found}, ModelScope does", f"a way for the model of {patient.typed}", typed=other)
    elif is_needed:
        yield bad(found.found, f"a way for the model of {patient.typed}", typed=found.type)
    else:
        yield note(found.found, "only for what is not here yet", typed=found.type)


def _offline(patient: Patient, *, is_needed: bool) -> Finding:
    if not is_needed:
        return good("HF_HUB_OFFLINE: nothing is asked of the hub")
    return bad(
        "HF_HUB_OFFLINE forbids asking the hub",
        f"a way for the model of {patient.typed}, which is not here",
        typed=f"unset HF_HUB_OFFLINE ; launcher prepare {patient.typed}",
    )


CHECKS.register("hub", Check(name="hub", order=26, examine=examine))
