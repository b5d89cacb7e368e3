"""What follows a run, in the parent and in this order: verify, copy, message, flush, only then switch off.

Asked for on the command line, off by default. `success` is the shell's `&&`, `always` its `;`. The machine is
switched off where it is a known rented one, never in CI, after a grace period that a file or Ctrl-C ends.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from launcher.errors import BadValue, LauncherError, Problem
from launcher.hardware.platform_facts import Platform, find_platform
from launcher.process.kept_copy import copy_final, require_target
from launcher.process.message import Message, missing_token, send
from launcher.process.switch_off import CANCEL_FILE, flush, hindrance, switch_off
from launcher.train.final_model import FACTS

SUMMARY = "summary.json"  # as `train/folder.py` names it, which imports torch
OPTIONS = ("then", "then_on", "copy_to", "grace")
USAGE = """--then shutdown  switch the rented machine off when the run has ended (AutoDL; default: nothing)
--then_on WHEN   success (default): only after a finished, verified run; always: also after a failed one
--copy_to DIR    put the final model there first, as one .tar file
--grace SECONDS  wait so long before switching off (60); cancel: touch RUN_FOLDER/KEEP_ON, or Ctrl-C
--notify         send a message when the run has ended (token: AUTODL_TOKEN)"""
_CHOICES = {"then": ("nothing", "shutdown"), "then_on": ("success", "always")}
Say = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class AfterRun:
    """What was asked for. `grace_s` is in seconds."""

    then: Literal["nothing", "shutdown"] = "nothing"
    then_on: Literal["success", "always"] = "success"
    copy_to: Path | None = None
    grace_s: float = 60.0
    notify: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all follows the run."""
        return self == AfterRun()


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The run as it ended: its folder, exit code and meaning, and whether a person stopped it by hand."""

    folder: Path
    exit_code: int
    words: str = ""
    by_hand: bool = False


def read_after_run(options: Mapping[str, str], flags: set[str]) -> AfterRun:
    """The request behind `launcher run`. Raises BadValue for a word that is none of the choices."""
    for name, known in _CHOICES.items():
        if options.get(name, known[0]) not in known:
            raise _bad(name, options[name], f"one of: {', '.join(known)}", known[-1])
    return AfterRun(
        then=cast(Literal["nothing", "shutdown"], options.get("then", "nothing")),
        then_on=cast(Literal["success", "always"], options.get("then_on", "success")),
        copy_to=Path(options["copy_to"]).expanduser() if "copy_to" in options else None,
        grace_s=_seconds(options.get("grace", "60")),
        notify="notify" in flags,
    )


def _seconds(text: str) -> float:
    if text.replace(".", "", 1).isdigit():
        return float(text)
    raise _bad("grace", text, "seconds, 0 or more", "60")


def _bad(name: str, value: str, right: str, typed: str) -> BadValue:
    return BadValue(
        Problem(where=f"--{name}", what=f"'{value}' cannot be meant", right=right, type=f"--{name} {typed}")
    )


def announce(asked: AfterRun, folder: Path, environ: Mapping[str, str], *, dry: bool = False) -> list[str]:
    """What will happen after the run, said before it. Raises ExportError for a copy that cannot be made.

    An old cancel file is another run's word: it goes, unless `dry`.
    """
    lines = []
    if asked.then == "shutdown" and not dry:
        (folder / CANCEL_FILE).unlink(missing_ok=True)
    if asked.copy_to is not None:
        if not dry:
            require_target(asked.copy_to)
        lines.append(f"the final model is copied to {asked.copy_to / folder.name}.tar")
    if asked.notify:
        lines.append(missing_token(environ) or "a message is sent")
    if asked.then == "shutdown":
        lines.append(_switching_off(asked, folder, environ))
    elif asked.then_on != "success":
        lines.append("--then_on says when to switch off, and --then shutdown is not given: nothing is")
    return [f"after the run: {line}" for line in lines]


def _switching_off(asked: AfterRun, folder: Path, environ: Mapping[str, str]) -> str:
    reason = hindrance(environ)
    if reason is not None:
        return f"NOT switched off: {reason}"
    command = cast(Platform, find_platform(environ)).shutdown_command
    when = "if it is finished and verified" if asked.then_on == "success" else "however it ends"
    return (
        f"{command}, {when}, {asked.grace_s:g} s after the last line; to cancel: touch {folder / CANCEL_FILE}"
    )


def follow(asked: AfterRun, ended: Ended, environ: Mapping[str, str], say: Say) -> None:
    """Do what was asked for, in its order. The run's exit code stays its own, whatever fails here."""
    if asked.is_empty:
        return
    fault = verified(ended)
    if fault is not None:
        say(f"after the run: {fault}")
    copied = _copy(asked, ended, fault, say)
    if asked.notify:
        say(f"after the run: {send(_message(ended, fault), environ)}")
    flush()
    if asked.then != "shutdown":
        return
    if ended.by_hand:
        say("after the run: not switched off: you stopped the run by hand")
    elif asked.then_on == "success" and (fault is not None or not copied):
        say("after the run: not switched off: the result is not safe (--then_on always would). It costs on")
    else:
        switch_off(ended.folder, asked.grace_s, environ, lambda line: say(f"after the run: {line}"))


def verified(ended: Ended) -> str | None:
    """None where the run is done and its model is there and whole; else what is wrong with it."""
    if ended.exit_code:
        return f"the run did not finish: {ended.words or f'exit code {ended.exit_code}'}"
    final = ended.folder / "final"
    if not (final / FACTS).is_file() or not (ended.folder / SUMMARY).is_file():
        return f"{final} is not complete: {FACTS} or {SUMMARY} is missing"
    broken = [path.name for path in final.glob("*.safetensors") if not is_whole(path)]
    if broken or not any(final.glob("*.safetensors")):
        return f"{final} has no whole weights: {', '.join(broken) or 'no file of them'}"
    return None


def is_whole(path: Path) -> bool:
    """Whether a safetensors file has the length that its header states; no tensor is read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= size - 8:
            return False
        try:
            header = json.loads(file.read(length))
            ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return False
    return bool(ends) and 8 + length + max(ends) == size


def _copy(asked: AfterRun, ended: Ended, fault: str | None, say: Say) -> bool:
    """Whether what should be elsewhere is elsewhere."""
    if asked.copy_to is None:
        return True
    if fault is not None:
        say("after the run: nothing was copied, there is no verified model")
        return False
    try:
        target = copy_final(ended.folder / "final", asked.copy_to, ended.folder.name)
    except (LauncherError, OSError) as error:
        say(f"after the run: {error}")
        return False
    say(f"after the run: the final model is in {target}, read back and the same")
    return True


def _message(ended: Ended, fault: str | None) -> Message:
    return Message(
        title="run finished" if fault is None else "run failed",
        name=ended.folder.name,
        content=(_quality(ended.folder) or "the model is in place") if fault is None else fault,
    )


def _quality(folder: Path) -> str:
    """Numbers of the summary's quality, as far as it has some."""
    try:
        found = json.loads((folder / SUMMARY).read_text(encoding="utf-8")).get("quality")
    except (OSError, ValueError, AttributeError):
        return ""
    items = found.items() if isinstance(found, dict) else ()
    return ", ".join(f"{key} {value:.4g}" for key, value in items if isinstance(value, int | float))
