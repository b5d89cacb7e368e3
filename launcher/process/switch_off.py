"""Switching a rented machine off: where it may be done, the grace to cancel it in, the command."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from launcher.hardware.platform_facts import Platform, find_platform

CANCEL_FILE = "KEEP_ON"
_POLL_S = 0.2
Say = Callable[[str], object]


def hindrance(environ: Mapping[str, str]) -> str | None:
    """Why this machine will not be switched off, whatever was asked; None where it can be."""
    platform = find_platform(environ)
    if environ.get("CI", "").lower() not in ("", "0", "false"):
        return "this is a CI machine (the variable CI is set)"
    if platform is None:
        return "this is no rented machine that is known here (AutoDL is); stop it as its owner says"
    if not platform.is_sure:
        return f"only {platform.evidence[0]} speaks for {platform.name}: too little to switch a machine off"
    if platform.shutdown_command is None:
        return f"there is no /usr/bin/shutdown here: switch the instance off in {platform.name}'s console"
    return None


def switch_off(folder: Path, grace_s: float, environ: Mapping[str, str], say: Say) -> None:
    """Wait `grace_s` seconds for a person who wants the machine on, then call the platform's command."""
    platform = find_platform(environ)
    if platform is None or hindrance(environ) is not None:
        say(f"NOT switched off: {hindrance(environ)}")
    elif _cancelled(folder / CANCEL_FILE, grace_s, say):
        say("not switched off: cancelled")
    else:
        _run(platform, say)


def flush() -> None:
    """Lines, files and the kernel's buffers reach the disk."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a terminal that was closed has nothing to keep
            stream.flush()
    os.sync()


def _cancelled(file: Path, grace_s: float, say: Say) -> bool:
    say(f"switching off in {grace_s:g} s; to cancel: touch {file}, or Ctrl-C")
    deadline = time.monotonic() + grace_s
    try:
        while not file.exists():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_S, left))
    except KeyboardInterrupt:
        pass  # the person's word
    return True


def _run(platform: Platform, say: Say) -> None:
    say(f"{platform.shutdown_command}")
    flush()
    try:
        done = subprocess.run([str(platform.shutdown_command)], check=False, capture_output=True, text=True)
    except OSError as error:
        say(f"it could not be started: {error.strerror}. Switch the instance off by hand")
        return
    if done.returncode:
        text = (done.stderr or done.stdout).strip().splitlines()
        why = text[0] if text else f"exit code {done.returncode}"
        say(f"it failed ({why}). Switch the instance off by hand: it costs on")
