"""Starters' own tracebacks are dropped and read; what the ranks write is passed on, at once."""

import re
import subprocess

import pytest
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from launcher.process.noise import Noise

OWN = (
    'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    f()\nValueError: mine\n'
)
HEAD = 'Traceback (most recent call last):\n  File "/x/bin/accelerate", line 7, in <module>\n    main()\n'


def test_ordinary_lines_pass() -> None:
    noise = Noise()
    assert noise.feed("step 1\nWaiting\n[x]\nEnd\n") == "step 1\nWaiting\n[x]\nEnd\n"


def test_half_lines_of_progress_bars_pass_at_once() -> None:
    noise = Noise()
    assert noise.feed("\r 10%|#") == "\r 10%|#"
    assert noise.feed("\r 20%|##") == "\r 20%|##"


def test_a_ranks_own_traceback_passes_whole() -> None:
    noise = Noise()
    assert noise.feed(OWN) + noise.rest() == OWN
    assert noise.code is None


@pytest.mark.parametrize(("code", "read"), [(2, 2), (-9, -9)])
def test_a_called_process_error_is_dropped_and_its_code_read(code: int, read: int) -> None:
    noise = Noise()
    error = subprocess.CalledProcessError(code, ["python", "run.py"])
    assert noise.feed(f"{HEAD}subprocess.CalledProcessError: {error}\nafter\n") == "after\n"
    assert noise.code == read


def test_torchruns_summary_is_dropped_up_to_its_last_rule() -> None:
    noise = Noise()
    failure = ProcessFailure(local_rank=0, pid=1, exitcode=-7, error_file="none")
    text = f"{HEAD}torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    text += ChildFailedError("run.py", {0: failure}).format_msg() + "\nafter\n"
    assert noise.feed(text) == "after\n"
    assert noise.code == -7


def test_an_error_of_the_starter_itself_passes() -> None:
    text = HEAD + "ValueError: You need to manually pass in `--num_processes`\n"
    assert Noise().feed(text) == text


def test_deepspeeds_log_is_dropped_and_its_code_read() -> None:
    noise = Noise()
    line = (
        "[2026-11-30 08:51:16,530] [ERROR] [launch.py:350:sigkill_handler] ['x'] exits with return code = 2\n"
    )
    assert noise.feed(line + "mine\n") == "mine\n"
    assert noise.code == 2


def test_torchruns_log_is_dropped() -> None:
    line = (
        "W1130 09:00:00.123000 12 torch/distributed/elastic/multiprocessing/api.py:1010] Sending process 3\n"
    )
    assert Noise().feed(line) == ""


def test_noise_in_pieces_is_still_noise() -> None:
    noise = Noise()
    text = f"{HEAD}subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.\n"
    assert "".join(noise.feed(letter) for letter in text) == ""


def test_a_traceback_behind_an_unfinished_bar_is_still_dropped() -> None:
    noise = Noise()
    shown = noise.feed("\r 20%|##")
    shown += noise.feed(
        f"{HEAD}subprocess.CalledProcessError: Command 'x' returned non-zero exit status 1.\n"
    )
    assert "Traceback" not in shown


def test_what_was_held_when_the_stream_ends_is_not_lost() -> None:
    noise = Noise()
    text = re.sub(r"ValueError.*\n", "", OWN)
    assert noise.feed(text) + noise.rest() == text
