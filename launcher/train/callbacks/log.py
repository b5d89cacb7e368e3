"""Logged steps to metrics.jsonl and to the person, whatever their numbers are: none is left out."""

from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.state import StepRecord


class Log(Callback):
    """Rates are over the time since the previous logged step, evaluation and saving left out."""

    def __init__(self) -> None:
        """Start the clock."""
        self.paused = 0.0
        self.last: float | None = None
        self.rows = self.tokens = 0

    def pause(self, seconds: float) -> None:
        """Time that was not spent on steps."""
        self.paused += seconds

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Write what is due."""
        job.metrics.advance(record.step)
        if record.is_logged:
            self._write(job, record)

    def _write(self, job: Job, record: StepRecord) -> None:
        now = record.handed_s
        if self.last is None:  # a resumed run has rows already, which took no time here
            self.last = job.metrics.opened
            self.rows, self.tokens = job.metrics.rows_at_start, job.metrics.tokens_at_start
        seconds = max(1e-9, now - self.last - self.paused)
        rows, tokens = job.progress.rows - self.rows, job.progress.tokens - self.tokens
        self.last, self.paused = now, 0.0
        self.rows, self.tokens = job.progress.rows, job.progress.tokens
        line = {
            "step": record.step,
            "epoch": round(record.epoch, 4),
            "loss": record.loss,
            "learning_rate": record.learning_rate,
            "grad_norm": record.grad_norm,
            "samples_per_s": round(rows / seconds, 3),
            "tokens_per_s": round(tokens / seconds, 1),
            "memory_bytes": job.measure.peak_bytes(),
            "memory_now_bytes": job.measure.now_bytes(),
            "skipped_steps": job.progress.skipped,
            "finite_fraction": round(job.progress.updates / record.step, 6),
        }
        if job.strategy.loss_scale.is_live:
            line["loss_scale"] = record.loss_scale
        line |= job.metrics.gauge(line)
        job.metrics.write(line)
        job.metrics.tell(line)
