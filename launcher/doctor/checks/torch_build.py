"""Whether the installed torch has kernels for these cards, and the driver runs its CUDA."""

from collections.abc import Iterator, Sequence

from launcher.doctor.builds import covers, driver_needed, driver_runs, wheel_for
from launcher.doctor.check import CHECKS, Check, Finding, bad, good
from launcher.doctor.driver import Card
from launcher.doctor.patient import Patient


def examine(patient: Patient) -> Iterator[Finding]:
    """A line for the build, one for each card it has no kernels for, one for products that failed."""
    torch, cards = patient.probes.get("torch"), patient.driver.cards
    if "error" in torch:
        yield bad(
            f"torch cannot be used: {torch['error']}", "torch 2.6 or newer", typed=_install(patient, cards)
        )
        return
    yield from _build(patient, torch["version"], torch["cuda"])
    missing = [card for card in cards if torch["cuda"] and _lacks(card, torch["arch_list"])]
    yield from (_no_kernels(patient, card, torch["version"], torch["arch_list"]) for card in missing)
    if not missing:
        yield from _products(patient)


def _build(patient: Patient, version: str, cuda: str | None) -> Iterator[Finding]:
    cards, driver = patient.driver.cards, patient.driver.version
    if cards and cuda is None:
        yield bad(
            f"torch {version} is a build without CUDA, beside {len(cards)} card(s)",
            wheel_for(cards[0].capability).reason,
            typed=_install(patient, cards),
        )
    elif cards and cuda and driver and not driver_runs(driver, cuda):
        yield bad(
            f"torch {version} is built for CUDA {cuda}, driver {driver} is too old for it",
            f"driver {driver_needed(cuda)} or newer, or a build for an older CUDA",
            typed="pip install 'torch>=2.6' --index-url https://download.pytorch.org/whl/cu126",
        )
    else:
        yield good(f"torch {version}" + (f" for CUDA {cuda}" if cuda else ""))


def _lacks(card: Card, arch_list: Sequence[str]) -> bool:
    return card.capability != (0, 0) and not covers(card.capability, arch_list)


def _no_kernels(patient: Patient, card: Card, version: str, arch_list: Sequence[str]) -> Finding:
    return bad(
        f"torch {version} has no kernels for {card.name} ({card.sm}); it has {' '.join(arch_list)}",
        f"a build with {card.sm}: {wheel_for(card.capability).reason}",
        typed=_install(patient, [card]),
    )


def _install(patient: Patient, cards: Sequence[Card]) -> str:
    """An image of the platform where there is one: a torch that pip brings may not fit its driver."""
    wheel = wheel_for(cards[0].capability) if cards else None
    line = wheel.line() if wheel else "pip install 'torch>=2.6'"
    if patient.platform is not None and wheel is not None:
        return (
            f"{line}   (or an image of {patient.platform.name} with CUDA {wheel.cuda[2:4]}.{wheel.cuda[4:]})"
        )
    return line


def _products(patient: Patient) -> Iterator[Finding]:
    found = patient.probes.get("matmul")
    products = found.get("products", {})
    failed = {name: words for name, words in products.items() if words != "ok"}
    if "error" in found:
        yield bad(f"a product of two numbers: {found['error']}", "one that comes out", typed="nvidia-smi")
    elif failed:
        words = "; ".join(f"{name}: {why}" for name, why in failed.items())
        yield bad(
            f"one-element products fail: {words}",
            "all of them",
            typed=_install(patient, patient.driver.cards),
        )
    else:
        yield good(f"one-element products: {', '.join(products)}")


CHECKS.register("torch_build", Check(name="torch build", order=11, examine=examine))
