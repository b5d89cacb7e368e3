"""Which curves a report shows, and of what."""

from collections.abc import Sequence
from dataclasses import replace

from launcher.report.curves import Chart
from launcher.report.figures import shown
from launcher.report.reading import Run
from launcher.report.series import series
from launcher.units import GIB

_HELD = (("memory_bytes", "train", "peak so far"), ("memory_now_bytes", "now", "now"))


def charts(runs: Sequence[Run]) -> list[Chart]:
    """Loss, rate, norm, throughput, utilisation, memory, and what evaluation measured."""
    found = [
        _loss(runs),
        _of(runs, "learning_rate", "Learning rate"),
        replace(_of(runs, "grad_norm", "Gradient norm"), may_be_log=True),
        _of(runs, "tokens_per_s", "Throughput", "tokens/s"),
        _of(runs, "samples_per_s", "Rows", "rows/s"),
        _mfu(runs),
        _memory(runs),
        *_measured(runs),
    ]
    return [chart for chart in found if chart.drawn]


def _of(runs: Sequence[Run], key: str, title: str, unit: str = "") -> Chart:
    curves = tuple(series(run.steps, key, run=place, label=run.label) for place, run in enumerate(runs))
    return Chart(name=key, title=title, unit=unit, curves=curves)


def _loss(runs: Sequence[Run]) -> Chart:
    """Training and evaluation on one axis."""
    found = []
    for place, run in enumerate(runs):
        found.append(series(run.steps, "loss", run=place, label=run.label))
        found.append(series(run.evaluations, "eval_loss", run=place, label=run.label, kind="eval"))
    return Chart(name="loss", title="Loss", unit="", curves=tuple(found), may_be_log=True)


def _mfu(runs: Sequence[Run]) -> Chart:
    chart = _of(runs, "mfu", "Model FLOPs utilisation", "share of the cards' dense 16-bit peak")
    return replace(chart, words=_percent)


def _percent(value: float | None) -> str:
    return shown(None) if value is None else f"{value:.1%}"


def _memory(runs: Sequence[Run]) -> Chart:
    """What is held at each logged step, and the highest so far."""
    found = []
    for place, run in enumerate(runs):
        for key, kind, words in _HELD:
            label = f"{run.label}, {words}"
            found.append(series(run.steps, key, run=place, label=label, kind=kind, per=GIB))
    return Chart(name="memory", title="Memory of the first rank", unit="GiB", curves=tuple(found))


def _measured(runs: Sequence[Run]) -> list[Chart]:
    """One chart a metric that evaluation gives; its loss is drawn beside training's, its seconds are none."""
    keys = {key for run in runs for line in run.evaluations for key in line if key.startswith("eval_")}
    return [
        Chart(
            name=f"m{place}",
            title=f"Evaluation: {key.removeprefix('eval_')}",
            unit="",
            curves=tuple(
                series(run.evaluations, key, run=number, label=run.label, kind="eval")
                for number, run in enumerate(runs)
            ),
        )
        for place, key in enumerate(sorted(keys - {"eval_loss", "eval_seconds"}))
    ]
