"""`launcher report`: one or several runs as one HTML file that opens offline."""

import argparse
import sys
from pathlib import Path

SUMMARY = "write one HTML file about runs: curves, memory, quality, differences"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The runs and the file."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run folder, or its name below runs/")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE.html",
        help="default: report.html in the run's folder, or here for several",
    )


def run(args: argparse.Namespace) -> int:
    """Write the report; its path goes to standard output."""
    from launcher.report.write import report

    file, text = report(args.runs, args.out)
    print(
        f"written: {len(text.encode()) / 1024:,.0f} KiB; open it in any browser, no network is needed",
        file=sys.stderr,
    )
    print(file)
    return 0
