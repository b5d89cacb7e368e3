"""An end that was asked for: by a signal, or by an early stop. All ranks end after the same step, saved.

A signal reaches the ranks at different moments. What a rank has been asked rides with the numbers of its
next step (one scalar, summed over the ranks on the device, read one step late like the loss), so that all
of them learn of it with the same step and nothing waits. One process needs no vote.
"""

import os
import signal
import time
from types import FrameType
from typing import NoReturn

import torch

from launcher import heartbeat
from launcher.errors import Interrupted, Problem
from launcher.train.world import World

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Starters pass on what they get: the same request may come two or three times. Later ones are meant.
REPEATS_S = 3.0
_STEP_S = 30.0  # for the step under way and the next one
_SLOW_DISK_BYTES_PER_S = 50e6
_MOST_S = 900.0


class Stop:
    """Whether an end is wanted. Before `arm` a signal ends the process at once: there is nothing to save."""

    def __init__(self) -> None:
        """Nothing has been asked, and nothing is to be saved yet."""
        self.number = 0
        self.since_s = 0.0
        self.armed = False
        self.grace_s = 0.0
        self.is_asked_somewhere = False
        self.early = False
        self.pid = os.getpid()

    def listen(self) -> None:
        """Take the signals that end a run; one that is ignored (nohup) stays ignored."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    def arm(self, num_bytes: int) -> None:
        """From now on there is something to save: `num_bytes` of it."""
        self.armed = True
        self.grace_s = min(_MOST_S, _STEP_S + num_bytes / _SLOW_DISK_BYTES_PER_S)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self.pid:  # a forked worker: as it would be without a handler
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        now = time.monotonic()
        if not self.armed or (self.number and now - self.since_s > REPEATS_S):
            self.end(number, "the last whole checkpoint is kept")
        if not self.number:
            self.number, self.since_s = number, now
            heartbeat.be_patient(self.grace_s)

    def end(self, number: int, kept: str) -> NoReturn:
        """Raise Interrupted."""
        name = signal.Signals(number).name if number else "another rank's signal"
        raise Interrupted(
            Problem(what=f"stopped by {name}", right=kept, type="the same command with --resume")
        )

    def vote(self, device: torch.device) -> torch.Tensor:
        """1 where this rank has been asked, on the device, without waiting for it."""
        return torch.full((), float(bool(self.number)), device=device)

    def settle(self, is_asked: bool) -> None:
        """What the ranks' votes of a settled step came to."""
        self.is_asked_somewhere |= is_asked
        if is_asked and not self.number:
            heartbeat.be_patient(self.grace_s)

    def is_agreed(self, world: World) -> bool:
        """Whether every rank ends after the step under way."""
        asked = bool(self.number) if world.num_ranks == 1 else self.is_asked_somewhere
        return asked or self.early

    def by_signal(self, world: World) -> bool:
        """Whether the end that was agreed on leaves the run unfinished."""
        return (bool(self.number) if world.num_ranks == 1 else self.is_asked_somewhere) and not self.early
