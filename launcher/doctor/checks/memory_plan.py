"""The recipe's memory plan on the cards that are here, by their measured memory."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient
from launcher.errors import LauncherError
from launcher.hardware.limits import host_memory_bytes
from launcher.plan.forecast import Forecast, Question, forecast
from launcher.recipe.load import LoadedRecipe
from launcher.units import format_bytes


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing without a recipe; a note where too little is known to tell."""
    if patient.loaded is None:
        return
    card = min(patient.driver.cards, key=lambda each: each.memory_bytes, default=None)
    if card is not None and card.known is None:
        yield note(f"{card.name} with {format_bytes(card.memory_bytes)} is not in the catalogue: not planned")
        return
    if card is None and patient.wants_card:
        return  # the driver's check says it
    on: dict[str, object]
    on = {"gpu": card.known.name, "device": "cuda"} if card and card.known else {"gpu": None, "device": "cpu"}
    try:
        host_bytes = host_memory_bytes(patient.root).amount
        yield from _told(patient, forecast(Question(loaded=_on(patient.loaded, on), host_bytes=host_bytes)))
    except LauncherError as error:
        yield note(error.problems[0].what, error.problems[0].right, typed=error.problems[0].type)


def _on(loaded: LoadedRecipe, hardware: dict[str, object]) -> LoadedRecipe:
    """The recipe on this machine's card."""
    changed = loaded.recipe.hardware.model_copy(update=hardware)
    recipe = loaded.recipe.model_copy(update={"hardware": changed})
    return LoadedRecipe(name=loaded.name, path=loaded.path, recipe=recipe, origins=loaded.origins)


def _told(patient: Patient, answer: Forecast) -> Iterator[Finding]:
    peak = answer.asked.breakdown.peak_bytes
    where = answer.gpu.name if answer.gpu else "the CPU"
    needs = f"{format_bytes(peak)} of {format_bytes(answer.usable_bytes)} on {where}"
    if answer.asked.fits:
        yield good(f"as asked: {needs}")
    else:
        yield bad(
            f"does not fit as asked: {needs}",
            "a smaller need, or a larger card",
            typed=_changes(patient, answer),
        )
    if not answer.host_fits:
        host = (
            f"{format_bytes(answer.host_bytes)} of main memory, {format_bytes(answer.host_limit.amount)} here"
        )
        yield bad(host, f"{format_bytes(answer.host_bytes)}", typed=f"launcher plan {patient.typed}")


def _changes(patient: Patient, answer: Forecast) -> str:
    """The nearest change that fits; the plan's own page where none is near."""
    if answer.chosen is not None:
        return f"launcher run {patient.typed} {answer.chosen.candidate.typed}"
    gpu = f" --gpu {answer.gpu.name}" if answer.gpu else ""
    return f"launcher plan {patient.typed}{gpu}"


CHECKS.register("memory_plan", Check(name="memory plan", order=42, examine=examine))
