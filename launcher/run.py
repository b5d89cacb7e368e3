"""What python, accelerate, torchrun and deepspeed start in every rank. No logic lives here.

Started as a script, its own folder stands on sys.path, where `launcher/data` or a dependency's
namesake would shadow the real one: the folder is replaced by the project's root first of all.
"""

import os
import sys

if __name__ == "__main__" and not __package__:
    _folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (nothing imported yet)
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != _folder]  # noqa: PTH100
    sys.path.insert(0, os.path.dirname(_folder))  # noqa: PTH120

from launcher.process.rank_process import run_as_rank  # noqa: E402


def main() -> int:
    """One rank from its command line to its exit code."""
    return run_as_rank(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
