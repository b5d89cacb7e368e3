"""How a run ended: the ranks' own code, kept where no starter can change it, and codes in words.

accelerate and torchrun turn every failure into exit code 1. A rank that knows better writes its code
to the file that `launcher run` names in the environment.
"""

import json
import signal
from collections.abc import MutableMapping
from pathlib import Path

from launcher.errors import EXIT_CANNOT_TELL, EXIT_FAILED, EXIT_RESUMABLE, EXIT_USAGE
from launcher.process.host_words import HostBefore

EXIT_FILE_VARIABLE = "LAUNCHER_EXIT_FILE"
OWN_CODES = {
    0: "done",
    EXIT_FAILED: "failed",
    EXIT_USAGE: "stopped before it began: something given is wrong",
    EXIT_CANNOT_TELL: "cannot tell",
    EXIT_RESUMABLE: "stopped, resumable: `--resume` continues from the last whole checkpoint",
}
_SHELLS = {
    126: "a program may not be executed: its file's mode, or a disk mounted noexec",
    127: "a program was not found: is the environment active?",
}
_SIGNALS = {
    signal.SIGKILL: "killed from outside, most often by the kernel for want of host memory: "
    "see `dmesg`, the container's memory limit, and lower dataloader_num_workers",
    signal.SIGBUS: "bus error, most often /dev/shm is full (Docker gives 64 MiB): "
    "start the container with --shm-size 8g, or dataloader_num_workers=0",
    signal.SIGSEGV: "crashed inside native code: often a CUDA library of another version",
    signal.SIGABRT: "aborted inside native code: the last lines above name the check that failed",
    signal.SIGILL: "an instruction that this CPU does not have: a wheel built for a newer one",
    signal.SIGXCPU: "the limit of CPU time (`ulimit -t`, or a queue's) was reached",
    signal.SIGXFSZ: "a file reached the limit of its size (`ulimit -f`)",
    signal.SIGHUP: "the terminal was closed: --detach outlives it",
    signal.SIGTERM: "asked to stop",
    signal.SIGINT: "interrupted from the keyboard",
}


def write_exit_code(environ: MutableMapping[str, str], code: int) -> None:
    """Leave a rank's code for `launcher run`; the first rank that failed has the word."""
    name = environ.get(EXIT_FILE_VARIABLE)
    if not name:
        return
    try:
        with Path(name).open("x", encoding="utf-8") as file:
            json.dump({"exit_code": code}, file)
    except FileExistsError:
        return


def read_exit_code(path: Path) -> int | None:
    """What a rank wrote, or None."""
    if not path.is_file() or not path.stat().st_size:
        return None
    code = json.loads(path.read_text(encoding="utf-8"))["exit_code"]
    return int(code)


def in_words(code: int, host: HostBefore | None = None) -> str:
    """An exit code as a person would say it; negative and 128 + n are signals.

    `host`, noted before the run, adds what this machine says of a lack of memory or of /dev/shm.
    """
    number = signal_of(code)
    if not number:
        behind = f": {_SHELLS[code]}" if code in _SHELLS else ""
        return OWN_CODES.get(code, f"ended with exit code {code}{behind}")
    if number not in {int(each) for each in signal.Signals}:
        return f"ended by signal {number}"
    name, usual = signal.Signals(number).name, _SIGNALS.get(signal.Signals(number))
    words = {signal.SIGKILL: host.killed_words, signal.SIGBUS: host.shm_words} if host else {}
    said = words.get(signal.Signals(number))
    words_or_none = (said() if said else "") or usual
    return f"{name}: {words_or_none}" if words_or_none else f"ended by {name}"


def signal_of(code: int) -> int:
    """The signal that an exit code stands for, 0 for none."""
    return -code if code < 0 else code - 128 if 128 < code < 160 else 0
