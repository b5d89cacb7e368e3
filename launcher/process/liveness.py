"""Which rank is lost, and which stands still: read from the heartbeats of a run's ranks."""

import time
from dataclasses import dataclass
from pathlib import Path

from launcher import heartbeat
from launcher.heartbeat import Beat
from launcher.process.children import is_zombie, state

START_S = 600.0  # so long may a rank take before its first step, whatever is asked: operators are built there
TOLD_S = 1.0  # a broken connection ends a rank at once, a starter takes longer to end one
LOST_S = 30.0  # so long may a starter take to notice by itself that a rank is gone
# The kernel's own word that a process cannot move, which waiting for another rank never looks like.
STUCK = {
    "T": "its process was stopped by a signal; `kill -CONT {pid}` lets it go on",
    "t": "a debugger holds its process",
    "D": "its process waits for a disk, network folder or driver that does not answer",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A rank that is lost or hung: which, what to say of it, and whether the run must be ended now."""

    rank: int
    pid: int
    words: str
    is_hung: bool
    must_end: bool


class Liveness:
    """The ranks of one run, looked at from time to time."""

    def __init__(self, folder: Path, timeout_s: float) -> None:
        """`folder`: where the ranks leave their records; `timeout_s`: how long all may stand still."""
        self.folder, self.timeout_s = folder, timeout_s
        self.began_s = time.monotonic()
        self.lost: dict[int, tuple[Beat, float]] = {}

    def look(self) -> Finding | None:
        """The first rank that was lost, else the one that everybody waits for once nobody moves any more."""
        now, beats = time.monotonic(), heartbeat.read_all(self.folder)
        # A while after a rank's own end the starter ends the others: they are not lost.
        told = any(beat.phase == heartbeat.DONE and now - beat.since_s > TOLD_S for beat in beats)
        for beat in beats if not told else ():
            if beat.phase != heartbeat.DONE and is_zombie(beat.pid):
                self.lost.setdefault(beat.rank, (beat, now))
        if self.lost:
            beat, since_s = min(self.lost.values(), key=lambda pair: (pair[1], pair[0].since_s))
            return _lost(beat, must_end=now - since_s > LOST_S)
        return self._hung(beats, now)

    def _hung(self, beats: list[Beat], now: float) -> Finding | None:
        working = [beat for beat in beats if beat.phase != heartbeat.DONE]
        last_s = max([self.began_s, *(max(beat.since_s, beat.patience_s) for beat in beats)])
        has_begun = bool(working) and all(beat.step >= 0 for beat in working)
        if now - last_s < (self.timeout_s if has_begun else max(self.timeout_s, START_S)):
            return None
        if not working:
            what = "every rank has ended, its starter has not" if beats else "no rank has begun"
            words = f"{what} within {now - last_s:.0f} s"
            return Finding(rank=-1, pid=0, words=words, is_hung=True, must_end=True)
        return _hung(working, now)


def pids(folder: Path) -> list[int]:
    """The ranks that have begun and not ended."""
    return [beat.pid for beat in heartbeat.read_all(folder) if not is_zombie(beat.pid)]


def patience_s(folder: Path) -> float:
    """Until when (monotonic clock) some rank that is still there asked not to be killed."""
    alive = (beat for beat in heartbeat.read_all(folder) if not is_zombie(beat.pid))
    return max((beat.patience_s for beat in alive), default=0.0)


def _lost(beat: Beat, *, must_end: bool) -> Finding:
    words = f"rank {beat.rank} (process {beat.pid}) is gone; it was last in {beat.place()}"
    return Finding(rank=beat.rank, pid=beat.pid, words=words, is_hung=False, must_end=must_end)


def _hung(beats: list[Beat], now: float) -> Finding:
    """The one that all wait for: held by the kernel, else with the fewest steps, then the oldest beat."""
    held = {beat.rank: STUCK.get(state(beat.pid), "") for beat in beats}
    first, *others = sorted(beats, key=lambda beat: (not held[beat.rank], beat.step, beat.since_s))
    words = f"rank {first.rank} has stood in {first.place()} for {now - first.since_s:.0f} s"
    words += f" ({held[first.rank].format(pid=first.pid)})" if held[first.rank] else ""
    waiting = ", ".join(f"rank {beat.rank} in {beat.place()}" for beat in others[:7])
    words += f"; waiting for it: {waiting}" if waiting else ""
    return Finding(rank=first.rank, pid=first.pid, words=words, is_hung=True, must_end=True)
