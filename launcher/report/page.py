"""The whole report: one file that opens offline, with nothing in it that is loaded from elsewhere."""

import base64
import datetime
import hashlib
from collections.abc import Sequence
from pathlib import Path

from launcher import __version__
from launcher.report.charts import charts
from launcher.report.confusion import confusion_section
from launcher.report.curves import figure
from launcher.report.differences import configuration_section
from launcher.report.events import events_section
from launcher.report.markup import Safe, empty, join, tag
from launcher.report.memory_bars import memory_section
from launcher.report.overview import overview
from launcher.report.quality import quality_section
from launcher.report.reading import Run

MARK = f'<meta name="generator" content="finetune-launcher {__version__} report"/>'
BEGINNING = '<!DOCTYPE html>\n<html lang="en"><head><meta name="generator" content="finetune-launcher '
_HERE = Path(__file__).parent
_NO_METRICS = (
    "No step is logged: there are no curves. The run has not come to its first step, or logged elsewhere."
)


def page(runs: Sequence[Run]) -> str:
    """The report of one or several runs as HTML."""
    title = f"Report: {', '.join(run.label for run in runs)}"
    script = Safe((_HERE / "report.js").read_text(encoding="utf-8"))
    head = join(
        [
            Safe(MARK),
            empty("meta", charset="utf-8"),
            empty("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
            empty("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", title),
            tag("style", Safe((_HERE / "report.css").read_text(encoding="utf-8"))),
        ]
    )
    written = datetime.datetime.now().astimezone().isoformat(" ", "seconds")
    made = f"Written {written} by launcher {__version__} from the run folders' files."
    body = tag("main", tag("h1", title), tag("p", made, class_="remark"), *_sections(runs))
    inner = tag("head", head) + tag("body", body, tag("script", script))
    return f'<!DOCTYPE html>\n<html lang="en">{inner}</html>\n'


def _policy(script: str) -> str:
    """Nothing is loaded, and no script runs but ours: a name that slipped through would stay a text."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _sections(runs: Sequence[Run]) -> list[Safe]:
    drawn = [figure(chart) for chart in charts(runs)]
    confused = confusion_section(runs)
    found = [
        ("Runs", overview(runs)),
        ("Curves", tag("div", *drawn, class_="curves") if drawn else tag("p", _NO_METRICS)),
        ("Quality", quality_section(runs)),
        ("Which class was taken for which", confused),
        ("Memory, predicted and measured", memory_section(runs)),
        ("Events", events_section(runs)),
        ("Configuration", configuration_section(runs)),
    ]
    return [tag("section", tag("h2", title), content) for title, content in found if content]
