"""Opens everything that a run is told through: the log, the bar, the trackers, the run's history."""

from typing import Any

from launcher.errors import Interrupted
from launcher.facts import Machine
from launcher.redact import redact, redacted_data
from launcher.train.gauge import Gauge, speed_facts
from launcher.train.history import earlier_seconds, note
from launcher.train.job import Job
from launcher.train.metrics_log import MetricsLog
from launcher.train.outlet import in_one_line
from launcher.train.tracker import open_trackers


def open_log(job: Job, machine: Machine) -> MetricsLog:
    """The log of the part of the run that begins now, `job.progress` being what is done already."""
    options, start = job.recipe.tracking, job.progress.step
    if not job.world.is_first:
        return _begun(MetricsLog.silent(), job)
    earlier_s = earlier_seconds(job.folder) if start else 0.0
    note(job.folder, "resumed" if start else "started", start, total_steps=job.total_steps)
    log = MetricsLog(
        job.folder,
        is_first=True,
        total_steps=job.total_steps,
        start=start,
        board="tensorboard" in options.report_to,
        progress=options.progress,
        outlets=open_trackers(
            options.remote,
            folder=job.folder,
            project=options.project,
            mode=options.tracker_mode,
            config=configuration(job),
            say=job.say,
        ),
    )
    log.on_close = lambda error: _ended(job, error)
    facts, why_not = speed_facts(job, machine)
    if why_not:
        job.say(why_not)
    log.gauge = Gauge(facts, total_steps=job.total_steps, start=start, earlier_s=earlier_s)
    return _begun(log, job)


def _begun(log: MetricsLog, job: Job) -> MetricsLog:
    log.rows_at_start, log.tokens_at_start = job.progress.rows, job.progress.tokens
    return log


def configuration(job: Job) -> dict[str, Any]:
    """Recipe and plan for a tracker; what may be a secret is named, not sent."""
    plan = {key: value for key, value in job.plan.to_dict().items() if key != "derived"}
    return {"recipe": redacted_data(job.recipe.model_dump(mode="json")), "plan": redacted_data(plan)}


def _ended(job: Job, error: BaseException | None) -> None:
    """The last line of this part's history: how it ended."""
    if error is None:
        note(job.folder, "ended", job.progress.step)
        return
    event = "stopped" if isinstance(error, Interrupted | KeyboardInterrupt) else "failed"
    note(job.folder, event, job.progress.step, why=redact(in_one_line(error)))
