"""The report in a real browser, where one is installed: it opens offline, its script runs, no other does."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.test_page import HOSTILE, finished
from tests.report.writing import page_of, write_lines

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)


def in_browser(page: Path, home: Path) -> str:
    """The document as the browser has it after its script ran, with what it logged in front."""
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--virtual-time-budget=2000",
    ]
    done = subprocess.run(
        [str(BROWSER), *options, f"--user-data-dir={home}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    return "\n".join(re.findall(r".*CONSOLE.*", done.stderr)) + "\n" + done.stdout


@pytest.mark.skipif(
    BROWSER is None, reason="no Chromium or Chrome is installed (Debian: apt install chromium)"
)
def test_a_browser_runs_our_script_and_no_other(tmp_path: Path) -> None:
    run = finished(tmp_path / "first")
    write_lines(run / "history.jsonl", [{"event": HOSTILE, "step": 1}])
    page = tmp_path / "report.html"
    # One key press, as a person would: the script answers with the values of the last step.
    press = 's=document.querySelector("#chart-loss > svg");s.focus();'
    press += 's.dispatchEvent(new KeyboardEvent("keydown",{key:"End"}))'
    text = page_of(run)
    page.write_text(text, encoding="utf-8")
    plain = in_browser(page, tmp_path / "home")
    assert "CONSOLE" not in plain and "<figure" in plain
    page.write_text(text.replace("</body>", f"<script>{press}</script></body>"), encoding="utf-8")
    refused = in_browser(page, tmp_path / "home")
    assert "Content Security Policy" in refused, "a script that is not the report's own does not run"
    allowed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    page.write_text(allowed.replace("</body>", f"<script>{press}</script></body>"), encoding="utf-8")
    moved = in_browser(page, tmp_path / "home")
    assert "step 5 | first: 0.894427" in moved
