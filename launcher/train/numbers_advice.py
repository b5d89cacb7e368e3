"""The message of a run that ends because its numbers are not finite: what, where, and what to type."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import EXIT_RESUMABLE, NonFinite, Problem
from launcher.facts import Machine
from launcher.precision import NATIVE_BF16
from launcher.train.numbers import Stop
from launcher.train.numbers_inspect import LOSS, Findings, Output


@dataclass(frozen=True, kw_only=True)
class Ending:
    """All that the message is made from.

    `step` from 1; `found` by rank; `bad_weights`: name to whether it was so before the first step;
    `checkpoint` is the name of the last whole one; `learning_rate` is the run's highest.
    """

    step: int
    stop: Stop
    precision: str
    machine: Machine
    found: Sequence[Findings]
    bad_weights: Mapping[str, bool]
    loss_was_finite: bool
    checkpoint: str | None
    evidence: Path
    learning_rate: float

    @property
    def forward_is_finite(self) -> bool:
        """Whether the forward pass was repeated on every rank and every number in it was finite."""
        return all(each.loss_is_finite and each.first is None and not each.failed for each in self.found)

    @property
    def has_passed(self) -> bool:
        """Whether the loss was not finite in the run, and is when the same numbers are taken again."""
        return not self.loss_was_finite and self.forward_is_finite and not self.bad_weights

    def error(self) -> NonFinite:
        """What ends the run. It asks for another try (75) only where the fault has passed.

        Everything else would end in the same way again.
        """
        kept = (
            f"weights stay as after the last finite step; the last whole checkpoint, kept: {self.checkpoint}"
            if self.checkpoint
            else "no checkpoint was written before (training.save_steps sets their interval)"
        )
        error = NonFinite(
            Problem(
                where=f"step {self.step}",
                what="\n  ".join([self.stop.reason, *self.where(), f"evidence: {self.evidence}"]),
                right=f"finite loss and gradients; {kept}",
                type="; else ".join(self.advice()),
            )
        )
        if self.has_passed and self.checkpoint:
            error.exit_code = EXIT_RESUMABLE
        return error

    def where(self) -> list[str]:
        """The first bad module of the rank that saw it earliest, or why there is none; lines."""
        if failed := next((each.failed for each in self.found if each.failed), ""):
            lines = [f"its forward pass could not be repeated: {failed}"]
        elif not self.forward_is_finite:
            lines = _module_lines(self.found, self.bad_weights)
        elif self.loss_was_finite:
            said = "every module's output is finite: gradients overflow on the way back"
            lines = [said, *_largest_line(self.found)]
        else:
            lines = ["its forward pass, repeated, is finite"]
        if self.bad_weights:
            lines.append(f"weights that are not finite: {_some(list(self.bad_weights))}")
        return lines

    def advice(self) -> list[str]:
        """What to try, in this order, each as it is typed."""
        if self.has_passed:
            return ["--resume, once: the fault did not show again (a card or its memory may be failing)"]
        if any(self.bad_weights.values()):
            return ["model.model_name_or_path=ANOTHER_COPY (its files hold weights that are not finite)"]
        slower = f"training.learning_rate={self.learning_rate / 10:g} training.warmup=0.1"
        if self.precision != "fp16":
            return [
                slower,
                *(["other rows, after a look at those named above"] if self._names_rows() else []),
            ]
        first = ["training.precision=bf16"] if self._has_bf16() else []
        return [*first, *_in_fp32(self.found), slower]

    def _has_bf16(self) -> bool:
        """A CPU computes in bf16 in any case, some of them slowly."""
        return self.machine.device != "cuda" or self.machine.compute_capability >= NATIVE_BF16

    def _names_rows(self) -> bool:
        return any(each.bad_rows for each in self.found)


def own_weights(first: Output, bad_weights: Iterable[str]) -> list[str]:
    """Those of the bad weights that belong to the module itself."""
    return [name for name in bad_weights if name.rpartition(".")[0] == first.module]


def first_module(found: Sequence[Findings]) -> str | None:
    """The module to name, by the order of the forward pass over all ranks."""
    seen = [each.first for each in found if each.first is not None]
    return min(seen, key=lambda out: out.order).module if seen else None


def _in_fp32(found: Sequence[Findings]) -> list[str]:
    named = first_module(found)
    if named is None or named == LOSS:
        return ["training.precision=fp32"]
    return [f"training.fp32_modules={named.removeprefix('model.')}", "training.precision=fp32"]


def _module_lines(found: Sequence[Findings], bad_weights: Mapping[str, bool]) -> list[str]:
    seen = [(each.first.order, each) for each in found if each.first is not None]
    if not seen:
        return []
    at = min(seen, key=lambda pair: pair[0])[1]
    first = at.first
    assert first is not None
    rows = f"row {', '.join(map(str, at.bad_rows[:8]))}" if at.bad_rows else f"rows {list(at.rows[:8])}"
    return [
        f"first module whose output is not finite: {first.module} ({first.kind}), {first.dtype}, "
        f"max |activation| {_size(first)}, {_input(first)}, "
        f"its own weights {'not finite' if own_weights(first, bad_weights) else 'finite'}",
        f"seen on rank {at.rank}, micro batch {at.micro_batch}, training {rows}",
    ]


def _size(first: Output) -> str:
    if first.largest_in_fp32 and first.dtype == "float16":
        return f"{first.largest_in_fp32:.4g} if it were fp32 (float16 ends at 65504)"
    return f"{first.largest:.4g} among its finite values"


def _input(first: Output) -> str:
    finite = "finite" if first.input_is_finite else "not finite itself"
    return f"its input {finite} (max {first.input_largest:.4g})"


def _largest_line(found: Sequence[Findings]) -> list[str]:
    every = sorted((out for each in found for out in each.largest), key=lambda out: -out.largest)
    if not every:
        return []
    top = every[0]
    return [f"max |activation| {top.largest:.4g} in {top.module} ({top.kind}), {top.dtype}"]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
