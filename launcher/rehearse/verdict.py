"""What a rehearsal found, as lines for a person and as JSON for a program."""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any


class StageFailed(Exception):
    """A stage found what it looks for; the text is the message for a person."""


@dataclass(kw_only=True)
class Verdict:
    """Filled in stage by stage; `failed_stage` is empty where everything passed."""

    recipe: str
    backend: str
    num_processes: int
    model: str = ""
    tokenizer: str = ""
    rows: str = ""
    in_use: str = ""
    pieces: str = ""
    precision: str = ""
    losses: list[float | None] = field(default_factory=list)
    evaluated: dict[str, float] = field(default_factory=dict)
    killed_at_step: int | None = None
    resumed_at_step: int | None = None
    repeated_steps: list[int] = field(default_factory=list)
    export: str = ""
    logits_difference: float | None = None
    failed_stage: str = ""
    message: str = ""
    seconds: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    not_checked: list[str] = field(default_factory=list)
    folder: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every stage was passed."""
        return not self.failed_stage

    def to_json(self) -> str:
        """Every field, and whether it passed."""
        return json.dumps({"passed": self.passed, **dataclasses.asdict(self)}, indent=2, ensure_ascii=False)

    def text(self) -> str:
        """A short verdict; empty findings are left out."""
        rows = [(name, value) for name, value in self._findings() if value]
        width = max(len(name) for name, _ in rows)
        lines = [f"{name:{width}}  {value}" for name, value in rows]
        lines += ["not checked here:", *(f"  - {each}" for each in self.not_checked)]
        return "\n".join([*lines, *self._end()])

    def _findings(self) -> list[tuple[str, Any]]:
        return [
            ("recipe", f"{self.recipe} on {self.backend}, {self.num_processes} CPU process(es)"),
            ("model", self.model),
            ("tokenizer", self.tokenizer),
            ("rows", self.rows),
            ("backend", self.in_use),
            ("sharding", self.pieces),
            ("precision", self.precision),
            ("losses", self._losses()),
            ("evaluation", "  ".join(f"{name} {value:.4g}" for name, value in self.evaluated.items())),
            ("resume", self._resume()),
            ("export", self.export),
        ]

    def _losses(self) -> str:
        known = [loss for loss in self.losses if loss is not None]
        if not known:
            return ""
        if len(known) < len(self.losses):
            return f"{len(self.losses) - len(known)} of {len(self.losses)} are not finite"
        way = "falling" if known[-1] < known[0] else "not falling (few steps on a random model: no matter)"
        return f"{len(known)} finite, {known[0]:.4f} to {known[-1]:.4f}, {way}"

    def _resume(self) -> str:
        if self.resumed_at_step is None:
            return ""
        again = ", ".join(map(str, self.repeated_steps))
        return f"all ranks killed at step {self.killed_at_step}, resumed at step {self.resumed_at_step}" + (
            f"; step {again} again with the same loss" if again else ""
        )

    def _end(self) -> list[str]:
        kept = [f"kept in {self.folder}"] if self.folder else []
        if self.passed:
            return [*kept, f"passed in {self.seconds:.0f} s"]
        return [*kept, f"FAILED at stage '{self.failed_stage}' after {self.seconds:.0f} s:", self.message]
