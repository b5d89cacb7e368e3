"""Start a run's starter, pass its output on, forward signals, and leave no process behind.

The starter is a session of its own: a signal reaches it once, through here. A rank that hangs or is lost
is named. Whatever the starter leaves behind when it ends is waited for briefly, then killed; its temporary
files lie in a folder that goes too (torchrun never removes the one that it makes for logs).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from launcher import heartbeat
from launcher.errors import EXIT_FAILED, EXIT_RESUMABLE
from launcher.process.children import adopting_orphans, end_all
from launcher.process.command import Command
from launcher.process.exit_codes import EXIT_FILE_VARIABLE, OWN_CODES, in_words, read_exit_code, signal_of
from launcher.process.host_words import HostBefore, before
from launcher.process.liveness import Liveness, patience_s
from launcher.process.orphan import ask_for_signal_on_parent_death
from launcher.process.passing import Passing
from launcher.process.symptoms import Symptom
from launcher.process.waiting import Waited, Waiting, collected_signals

LINGER_S = 3.0
_SOCKET_PATH_BYTES = 107  # sun_path of unix(7), without its closing zero


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: its exit code, what it means, and processes that had to be killed.

    `can_restart`: a rank was lost, hung or killed, or the run said that it can be resumed; and nobody asked
    for its end.
    """

    exit_code: int
    words: str
    killed: tuple[int, ...] = ()
    can_restart: bool = False
    stopped_by: int = 0


def short_place(usual: str) -> str:
    """Where the run's temporary folder goes: /tmp instead of a place so deep that sockets would not fit.

    Data workers hand tensors over through multiprocessing's sockets below it. With a path that is too long a
    worker fails and the run waits for it for ever (torch 2.13).
    """
    longest = len(os.fsencode(usual)) + len("/launcher-12345678/pymp-12345678/listener-12345678")
    return "/tmp" if longest > _SOCKET_PATH_BYTES and os.access("/tmp", os.W_OK) else usual


def supervise(
    command: Command,
    environ: Mapping[str, str],
    *,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> Outcome:
    """Run the command to its end. Call from the main thread: it installs signal handlers."""
    place = short_place(tempfile.gettempdir())
    host = before()
    with tempfile.TemporaryDirectory(prefix="launcher-", dir=place) as folder, adopting_orphans() as spared:
        exit_file = Path(folder) / "exit.json"
        variables = {**environ, **command.environment, EXIT_FILE_VARIABLE: str(exit_file), "TMPDIR": folder}
        with collected_signals() as came:
            streams = (stdout or sys.stdout, stderr or sys.stderr)
            ended = _run(command, variables, came, streams, spared, Path(folder))
        return _outcome(ended, read_exit_code(exit_file), came, host)


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """How the wait ended, the code of a rank that the starter named, what had to be killed, what was read."""

    waited: Waited
    named: int | None
    killed: tuple[int, ...]
    symptom: Symptom | None


def _run(
    command: Command,
    variables: MutableMapping[str, str],
    came: list[int],
    streams: tuple[TextIO, TextIO],
    spared: frozenset[int],
    folder: Path,
) -> _Ended:
    beats = folder / "heartbeats"
    beats.mkdir()
    variables[heartbeat.FOLDER_VARIABLE] = str(beats)
    passing = [Passing(stream, variables) for stream in streams]
    child = _start(command, variables, passing)
    liveness = Liveness(beats, heartbeat.timeout_s(variables))
    waited = Waiting(child, came=came, spared=spared, liveness=liveness, num_ranks=command.num_ranks).run()
    killed = end_all(LINGER_S, spared, partial(patience_s, beats))  # who holds the pipes keeps the readers
    for each in passing:
        each.finish(LINGER_S)
    named = next((each.noise.code for each in reversed(passing) if each.noise.code is not None), None)
    symptom = next((each.symptoms.first for each in reversed(passing) if each.symptoms.first), None)
    return _Ended(waited=waited, named=named, killed=tuple(killed), symptom=symptom)


def _start(
    command: Command, variables: Mapping[str, str], passing: list[Passing]
) -> "subprocess.Popen[bytes]":
    child = subprocess.Popen(
        command.argv,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=passing[0].theirs,
        stderr=passing[1].theirs,
        start_new_session=True,
        preexec_fn=ask_for_signal_on_parent_death,
    )
    for each in passing:
        each.start()
    return child


def _outcome(ended: _Ended, written: int | None, came: list[int], host: HostBefore) -> Outcome:
    """The rank's own word first, then what the starter said of it, then the starter's exit code."""
    code, found = ended.waited.code, ended.waited.found
    if came and written is None:
        code = 128 + came[0]
    elif written is not None and code:
        code = written
    was_named = ended.named is not None and ended.named < 0 and not came
    cause = ended.named if was_named and ended.named is not None else code
    is_hung = found is not None and found.is_hung and not came
    is_lost = bool(signal_of(cause)) or (found is not None and bool(ended.waited.code))
    exit_code = code if code in OWN_CODES or came else EXIT_FAILED
    if is_hung:
        exit_code = EXIT_RESUMABLE
    return Outcome(
        exit_code=exit_code,
        words=_words(ended, cause, host, is_hung=is_hung, came=came),
        killed=ended.killed,
        stopped_by=came[0] if came else 0,
        can_restart=not came and (exit_code == EXIT_RESUMABLE or (is_lost and written is None)),
    )


def _words(ended: _Ended, cause: int, host: HostBefore, *, is_hung: bool, came: list[int]) -> str:
    """What ended the run, the rank that went first in front, a library's complaint behind."""
    found, symptom = ended.waited.found, ended.symptom
    if is_hung and found is not None:
        return f"{found.words}; {OWN_CODES[EXIT_RESUMABLE]}"
    words = in_words(cause, host)
    if came or not ended.waited.code:
        return words
    first = f"{found.words}; " if found is not None else ""
    behind = f"; {symptom.what}: {symptom.right}" if symptom is not None and not first else ""
    return first + words + behind
