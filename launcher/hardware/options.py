"""The recipe's `hardware` section: what the job is planned for. The starter has the last word."""

from typing import Literal

from pydantic import Field

from launcher.options import Options


class HardwareOptions(Options):
    """The card and how many; defaults for planning and for `launcher run`."""

    device: Literal["auto", "cuda", "cpu"] = Field("auto", description="cuda: refuse to run without a GPU.")
    gpu: str | None = Field(None, description="Card from `launcher/hardware/gpus.csv`.")
    gpus: int = Field(1, ge=1, description="Number of processes, one a card.")
