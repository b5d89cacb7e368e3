"""The machine under examination, and the recipe it is held against: facts, read once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launcher.doctor.driver import Driver
from launcher.doctor.probes import Probes
from launcher.hardware.platform_facts import Platform
from launcher.recipe.load import LoadedRecipe
from launcher.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Patient:
    """What checks look at.

    `settled` are the variables that `launcher run` would set here; `environ` holds them already. `typed` is
    how the recipe was named, for lines to type. `visible` are the cards' ids that a run may use.
    """

    environ: Mapping[str, str]
    root: Path = Path("/")
    platform: Platform | None = None
    settled: Mapping[str, str] = field(default_factory=dict)
    driver: Driver = Driver()  # noqa: RUF009 (frozen)
    probes: Probes = field(default_factory=Probes)
    visible: tuple[str, ...] = ()
    loaded: LoadedRecipe | None = None
    typed: str = "RECIPE"

    @property
    def recipe(self) -> Recipe | None:
        """The recipe, if one was named."""
        return self.loaded.recipe if self.loaded else None

    @property
    def wants_card(self) -> bool:
        """Whether the recipe cannot do without one."""
        return self.recipe is not None and self.recipe.hardware.device == "cuda"
