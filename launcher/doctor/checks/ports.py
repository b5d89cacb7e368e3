"""The rendezvous port that `deepspeed` always takes, and TensorBoard's."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, good, note
from launcher.doctor.patient import Patient
from launcher.hardware.ports import DEEPSPEED_PORT, free_port, holder, is_free


def examine(patient: Patient) -> Iterator[Finding]:
    """A port that is taken is a note: `launcher run` finds another by itself, and nothing is stopped."""
    if is_free(DEEPSPEED_PORT):
        yield good(f"{DEEPSPEED_PORT} is free")
    else:
        yield note(
            f"{DEEPSPEED_PORT} is held by {holder(DEEPSPEED_PORT)}",
            "another port for starts without launcher run, which finds one by itself",
            typed=f"deepspeed --master_port {free_port()} launcher/run.py ...",
        )
    known = patient.platform.public_ports if patient.platform else (6006,)
    for port in known:
        if not is_free(port):
            yield note(f"{port} (TensorBoard by hand) is held by {holder(port)}; it is left alone")


CHECKS.register("ports", Check(name="ports", order=21, examine=examine))
