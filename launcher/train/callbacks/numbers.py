"""Watches loss and gradients of every settled step; tells, keeps evidence, and ends the run where it must.

Nothing here reads a device in the steady state: records arrive one step late. Skips are known on every rank,
so all of them come to the same decision at the same step.
"""

import math

from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.numbers import Numbers
from launcher.train.numbers_end import end
from launcher.train.numbers_evidence import MOST_FILES, evidence, keep, path_of, texts
from launcher.train.numbers_inspect import bad_parameters
from launcher.train.numbers_spikes import SMALLEST_PART_OF_NORMS, Spikes
from launcher.train.numbers_zero import require_targets, stuck_at_zero
from launcher.train.state import StepRecord


class WatchNumbers(Callback):
    """One for a run; `start` before the first step."""

    def __init__(self) -> None:
        """Nothing is known before `start`."""
        self.loss, self.norm = Spikes(), Spikes(SMALLEST_PART_OF_NORMS)
        self.num_files = 0
        self.bad_at_start: list[str] = []
        self.said_settling = self.said_empty = self.has_learnt = False

    def start(self, job: Job) -> None:
        """Look at the weights and the rows once, and take over what a checkpoint says."""
        self.numbers = Numbers(
            job.recipe.training,
            is_scaled=job.strategy.loss_scale.is_live,
            in_a_row=job.progress.skipped_in_a_row,
            has_updated=job.progress.updates > 0,
        )
        self.has_learnt = job.progress.updates > 0
        self.bad_at_start = bad_parameters(job)
        if bad := self.bad_at_start:
            job.say(
                f"warning: {len(bad)} weights hold values that are not finite before the first step: "
                f"{', '.join(bad[:3])}; rows that use them will be left out"
            )
        require_targets(job)
        if names := job.recipe.training.fp32_modules:
            job.say(f"in fp32 whatever the precision: {', '.join(names)}")

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Judge a step. Raises NonFinite where the run must end, TrainError where nothing can be learnt."""
        if record.skipped:
            self._skipped(job, record)
        else:
            self._finite(job, record)
        if record.step == job.total_steps and job.progress.skipped:
            skipped = job.progress.skipped
            job.say(f"{skipped} of {record.step} steps were left out: their numbers were not finite")

    def _finite(self, job: Job, record: StepRecord) -> None:
        self.numbers.add(record)
        if not record.num_targets:
            self._empty(job, record)
            return
        self._spikes(job, record)
        self.has_learnt |= record.grad_norm > 0
        if (what := self.numbers.stuck_at_zero(record)) is not None:
            stuck_at_zero(job, record, what, has_learnt=self.has_learnt)

    def _skipped(self, job: Job, record: StepRecord) -> None:
        shares = job.world.gather(record.share)
        is_settling = self.numbers.is_settling(record)
        stop = self.numbers.add(record)
        if stop is not None:
            raise end(job, self.numbers, record, stop, shares, self.bad_at_start)
        if is_settling:
            self._settling(job, record)
            return
        self._tell(job, record)
        if self.num_files < MOST_FILES:
            self.num_files += 1
            facts = evidence(job, [*self.numbers.past], step=record.step, shares=shares)
            keep(job, facts | {"texts": texts(job, facts["rows"])}, step=record.step)

    def _settling(self, job: Job, record: StepRecord) -> None:
        if not self.said_settling:
            job.say(
                f"step {record.step}: gradients overflow at the first loss scale; it is now "
                f"{record.loss_scale:g}. Normal in the first fp16 steps: left out, counted in skipped_steps"
            )
        self.said_settling = True

    def _tell(self, job: Job, record: StepRecord) -> None:
        loss_is_finite = math.isfinite(record.step_loss)
        what = (
            f"gradients are not finite (norm {record.grad_norm:g})"
            if loss_is_finite
            else "loss is not finite"
        )
        scale = f"; loss scale now {record.loss_scale:g}" if self.numbers.is_scaled else ""
        job.say(
            f"step {record.step}: {what}; weights left alone, {job.progress.skipped} step(s) skipped so far, "
            f"{self.numbers.in_a_row} in a row{scale}; rows in {path_of(job.folder, record.step).name}"
        )

    def _empty(self, job: Job, record: StepRecord) -> None:
        if not self.said_empty:
            rows = job.order.window(record.step - 1).tolist()
            job.say(
                f"step {record.step}: none of its {len(rows)} rows has a trained token: loss 0, nothing "
                f"learnt from it (rows {', '.join(map(str, rows[:8]))}); said once"
            )
        self.said_empty = True

    def _spikes(self, job: Job, record: StepRecord) -> None:
        found = {
            "loss": self.loss.add(record.step_loss),
            "gradient norm": self.norm.add(record.grad_norm),
        }
        for name, spike in found.items():
            if spike is not None:
                job.say(
                    f"step {record.step}: {name} {spike.value:.4g} is {spike.factor:.1f} times the median of "
                    f"the steps before ({spike.median:.4g})"
                )
                return
