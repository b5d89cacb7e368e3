"""The processes below this one are found and ended, also after their parent died."""

import os
import subprocess
import sys

from launcher.process.children import adopting_orphans, descendants, end_all, is_zombie
from tests.process.families import left_after

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(1800)"]
PARENT = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"


def test_an_orphan_is_adopted_found_and_ended_and_what_was_there_before_is_spared() -> None:
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as mine:
        with adopting_orphans() as spared:
            assert mine.pid in spared
            subprocess.run([sys.executable, "-c", PARENT, *SLEEP], stdout=subprocess.DEVNULL, check=True)
            (orphan,) = [pid for pid in descendants(os.getpid()) if pid not in spared]
            assert end_all(0.0, spared) == [orphan]
            assert left_after([orphan]) == []
        assert mine.poll() is None
        mine.kill()


def test_nothing_below_ends_at_once() -> None:
    with adopting_orphans() as spared:
        assert end_all(60.0, spared) == []


def test_a_process_that_is_gone_counts_as_ended() -> None:
    assert is_zombie(2**22 + 1)
    assert not is_zombie(os.getpid())
