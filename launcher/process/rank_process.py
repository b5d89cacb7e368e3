"""One rank as a process: arguments, starter, watch, work, and how its end is told.

A mistake is printed once, by the first rank, framed so that it stands out of a starter's own
traceback; the other ranks leave with the same exit code.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from launcher import heartbeat
from launcher.errors import EXIT_FAILED, EXIT_RESUMABLE, LauncherError
from launcher.process.arguments import HelpWanted, parse
from launcher.process.exit_codes import write_exit_code
from launcher.process.failures import explain, traceback_of
from launcher.process.known_errors import advice
from launcher.process.orphan import end_with_parent
from launcher.process.prepare import prepare
from launcher.process.restarts import continued
from launcher.process.starter import read_starter, settled
from launcher.redact import redact

_RULE = "=" * 78
_LINGER_S = 1.5


def run_as_rank(argv: Sequence[str]) -> int:
    """The whole life of this process. Returns 0; anything else ends the process with that exit code.

    Never raises for a person's mistake.
    """
    refuse_world_writing()
    code = _guarded(argv)
    heartbeat.beat(heartbeat.DONE)
    if code:
        _deafen()
        write_exit_code(os.environ, code)
        _let_the_first_rank_speak()
        _leave_at_once(code)
    return code


def _deafen() -> None:
    """This process is leaving: a starter's signal to hurry must not become a traceback."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _leave_at_once(code: int) -> NoReturn:
    """Without the interpreter's own end: tearing torch down takes seconds, or aborts, when ranks are gone."""
    for child in multiprocessing.active_children():
        child.kill()  # data workers are deaf to anything milder
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _guarded(argv: Sequence[str]) -> int:
    try:
        return _work(argv)
    except BaseException as error:
        # What ends a rank is told to its end: a starter's signal meanwhile asks for nothing more.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        return _told(error)


def _told(ended: BaseException) -> int:
    """Say what ended the rank; the exit code for it."""
    try:
        raise ended
    except HelpWanted as usage:
        tell(str(usage))
        return 0
    except LauncherError as error:
        tell(f"{_RULE}\n{error}\n{_RULE}", always=error.concerns_one_rank)
        return error.exit_code
    except KeyboardInterrupt:
        tell("interrupted; the last whole checkpoint is kept: the same command with --resume continues")
        return EXIT_RESUMABLE
    except Exception as error:  # noqa: BLE001 (whatever it was: it is told, and the rank ends)
        return _unforeseen(error)


def _unforeseen(error: Exception) -> int:
    """What torch or a library raised: in words where the cause is known, else its traceback."""
    known = explain(error, os.environ)
    if known is None:
        print(traceback_of(error), file=sys.stderr, flush=True)
        if (problem := advice(error)) is not None:
            print(f"{_RULE}\n{redact(problem.render())}\n{_RULE}", file=sys.stderr, flush=True)
        return EXIT_FAILED
    print(f"{_RULE}\n{redact(str(known))}\n{_RULE}", file=sys.stderr, flush=True)
    return known.exit_code


def refuse_world_writing() -> None:
    """Whatever umask the shell has (containers: 000), nobody else may write into a run's folder."""
    os.umask(os.umask(0o077) | 0o002)


def _work(argv: Sequence[str]) -> int:
    arguments = continued(parse(argv), os.environ)
    starter = settled(arguments, read_starter(os.environ, arguments))
    end_with_parent(starter)
    for line in prepare(arguments, starter, os.environ):
        tell(line)
    from launcher.train.rank import run_rank  # imports torch: seconds, after everything cheap was checked

    return run_rank(arguments, starter)


def _let_the_first_rank_speak() -> None:
    """A starter ends all ranks as soon as one has failed: the silent ones wait for the message."""
    if os.environ.get("RANK", "0") != "0":
        time.sleep(_LINGER_S)


def tell(text: str, *, always: bool = False) -> None:
    """A line on stderr, from the first rank only unless `always`."""
    if always or os.environ.get("RANK", "0") == "0":
        print(redact(text), file=sys.stderr, flush=True)
