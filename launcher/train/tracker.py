"""Trackers with a package of their own (wandb, swanlab, trackio), through Accelerate's tracker classes.

Each lives in a thread: what waits for a network, or for ever, waits there and not in the training loop.
Tried with accelerate 1.15, wandb 0.31, swanlab 0.10, trackio 0.43.
"""

import importlib
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from launcher.train.outlet import Say, in_one_line
from launcher.train.tracker_mode import SERVICES, choose

CLOSE_S = 30.0
INIT_S = 20.0  # of wandb: its own 90 s would also hold up the end of the process
_KEPT = 20_000
_END = None

Item = tuple[Mapping[str, float], int] | None


class Threaded:
    """One tracker behind a queue. A failure, or an end that takes too long, is said once."""

    def __init__(self, name: str, make: Callable[[], Any], config: Mapping[str, Any], say: Say) -> None:
        """`make` gives an Accelerate tracker that is not started yet; it is called in the thread."""
        self.name, self.make, self.config, self.say = name, make, config, say
        self.items: queue.Queue[Item] = queue.Queue(_KEPT)
        self.lost = 0
        self.thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self.thread.start()

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Put into the queue; what a slow tracker has no room for is counted and left out."""
        if not self.thread.is_alive():
            return  # it failed, and that was told
        try:
            self.items.put_nowait((values, step))
        except queue.Full:
            self.lost += 1

    def close(self, wait_s: float = CLOSE_S) -> None:
        """Let it finish, but not for ever."""
        if self.thread.is_alive():
            with suppress(queue.Full):  # it stands still: said below
                self.items.put(_END, timeout=wait_s)
                self.thread.join(wait_s)
        if self.thread.is_alive():
            self.say(f"{self.name} did not finish within {wait_s:.0f} s and is left; metrics.jsonl is whole")
        elif self.lost:
            self.say(f"{self.name} was too slow for {self.lost} lines; metrics.jsonl has them")

    def _work(self) -> None:
        try:
            tracker = self.make()
            tracker.start()
            if self.config:
                tracker.store_init_configuration(dict(self.config))
            while (item := self.items.get()) is not _END:
                tracker.log(dict(item[0]), step=item[1])
            tracker.finish()
        except (Exception, SystemExit) as error:  # whatever a tracker raises: the run is worth more
            self.say(f"{self.name} failed and is left out from here on: {in_one_line(error)}")


def open_trackers(
    names: tuple[str, ...],
    *,
    folder: Path,
    project: str,
    mode: str,
    config: Mapping[str, Any],
    say: Say,
) -> list[Threaded]:
    """Start each tracker; nothing is waited for. The run is named as its folder is."""

    def maker(name: str) -> Callable[[], Any]:
        return lambda: accelerate_tracker(name, project, options_of(name, folder, mode, say))

    return [Threaded(name, maker(name), config, say) for name in names]


def accelerate_tracker(name: str, project: str, options: Mapping[str, Any]) -> Any:
    """Accelerate's tracker of that name, not started."""
    from accelerate import tracking

    # Its own logger refuses to work before an Accelerator is there, and not every backend has one.
    tracking.logger = logging.getLogger("accelerate.tracking")
    return tracking.LOGGER_TYPE_TO_CLASS[name](project, **options)


def options_of(name: str, folder: Path, mode: str, say: Say) -> dict[str, Any]:
    """What the package's `init` is given; says where it writes to when that is not the network."""
    if name not in SERVICES:  # trackio keeps a data base of its own on this machine
        say(f"{name}: kept on this machine; trackio show")
        return {"name": folder.name}
    service = SERVICES[name]
    chosen = choose(service, mode)
    if chosen.name != "online":
        later = service.later.format(folder=folder)
        say(f"{name}: {chosen.name} ({chosen.why}); later: {later}")
    return {"name": folder.name, "mode": chosen.name} | _places(name, folder)


def _places(name: str, folder: Path) -> dict[str, Any]:
    """Its files lie in the run folder; what the run prints stays here, it may hold what is no metric."""
    if name == "wandb":
        made = importlib.import_module("wandb").Settings
        # Quiet: its table of every metric would stand between the run's last words and the prompt.
        settings = made(console="off", quiet=True, save_code=False, init_timeout=INIT_S)
        return {"dir": str(folder), "settings": settings}
    return {"log_dir": str(folder / "swanlab")}
