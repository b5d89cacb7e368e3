"""Opens everything that a run is told through: the log, the bar, the trackers, the run's history."""

from collections.abc import Mapping
from typing import Any

from launcher.facts import Machine
from launcher.plan.write import redacted
from launcher.train.gauge import Gauge, speed_facts
from launcher.train.history import earlier_seconds, note
from launcher.train.job import Job
from launcher.train.metrics_log import MetricsLog
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
    return {"recipe": without_secrets(job.recipe.model_dump(mode="json")), "plan": without_secrets(plan)}


def without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same tree with every text passed through `redacted`."""
    return {key: _clean(key, value) for key, value in values.items()}


def _clean(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(value)
    if isinstance(value, list | tuple):
        return [_clean(name, each) for each in value]
    return redacted(name, value) if isinstance(value, str) else value
