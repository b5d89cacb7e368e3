"""Prepared tokens: made once, kept, and found again by what they were made from.

An entry is written beside its place and renamed when it is whole; one process writes, the others wait for
the file. What was found, or why it had to be made, is said in a line.
"""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import launcher.errors
from launcher.data.atomic import write_text
from launcher.data.cache_entry import ENTRY, Content, Damaged, parts_of, read_entry, write_entry
from launcher.data.cache_key import KeyParts
from launcher.data.cache_lock import is_held, locked
from launcher.errors import DataError, LauncherError, Problem
from launcher.units import format_bytes

KEPT = 16
_HEAD_START_S = 1.0
_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True)
class Found:
    """Tokens, and a line on where they come from."""

    content: Content
    said: str


class Cache:
    """The entries below one folder."""

    def __init__(self, root: Path) -> None:
        """The folder is made when something is written."""
        self.root = root
        self.entries = root / "tokens"
        self.notes = root / "files"

    def get(
        self,
        parts: KeyParts,
        make: Callable[[], Content],
        say: Callable[[str], object],
        *,
        verify: bool = False,
        makes_it: bool = True,
    ) -> Found:
        """The entry of these parts; made by `make` where there is none, by one process on this machine.

        `makes_it`: False leaves another process, which was started beside this one, a moment's start.
        Raises what `make` raises, also in the processes that waited for it.
        """
        found, reason = self._open(parts, verify=verify)
        if found is not None:
            return found
        started = time.time()
        if not makes_it:
            self._let_another_begin(parts)
        with ExitStack() as held:
            try:
                held.enter_context(locked(self._beside(parts, "lock"), say))
            except OSError as error:
                return Found(content=make(), said=f"tokens are not kept: {_cannot(error, self.root)}")
            found, _ = self._open(parts, verify=verify)
            if found is not None:
                return found
            self._raise_what_another_raised(parts, started)
            return self._make(parts, make, reason)

    def _open(self, parts: KeyParts, *, verify: bool) -> tuple[Found | None, str]:
        folder = self.entries / parts.key
        try:
            content = read_entry(folder, parts, verify=verify)
        except Damaged as damage:
            return None, f"the kept ones are damaged ({damage})"
        if content is None:
            return None, self._why_not(parts)
        with suppress(OSError):  # another user's cache: its age is not ours to change
            os.utime(folder / ENTRY)
        size = format_bytes(_size(folder))
        return Found(content=content, said=f"tokens from the cache ({size} in {folder})"), ""

    def _why_not(self, parts: KeyParts) -> str:
        """What has changed since the newest entry of the same training data."""
        others = [parts_of(folder) for folder in self._by_age()]
        same = [each for each in others if each.get("place") == parts.place]
        if not same:
            return "this data was not prepared before"
        return f"{' and '.join(parts.changes(same[0]))} changed"

    def _by_age(self) -> list[Path]:
        """Entries, the last used first."""
        found = []
        for file in self.entries.glob(f"*/{ENTRY}"):
            try:
                found.append((file.stat().st_mtime, file.parent))
            except OSError:
                continue  # removed meanwhile
        return [folder for _, folder in sorted(found, reverse=True)]

    def _beside(self, parts: KeyParts, kind: str) -> Path:
        return self.entries / f"{parts.key}.{kind}"

    def _let_another_begin(self, parts: KeyParts) -> None:
        until = time.monotonic() + _HEAD_START_S
        while time.monotonic() < until and not (self.entries / parts.key).exists():
            if is_held(self._beside(parts, "lock")):
                return
            time.sleep(_POLL_S)

    def _make(self, parts: KeyParts, make: Callable[[], Content], reason: str) -> Found:
        started = time.perf_counter()
        try:
            content = make()
        except LauncherError as error:
            with suppress(OSError):  # then the others find it out for themselves
                write_text(self._beside(parts, "failed"), _error_text(error))
            raise
        seconds = time.perf_counter() - started
        rows = len(content.train) + (len(content.evaluation) if content.evaluation else 0)
        rate = f"{rows:,} rows in {seconds:.1f} s, {rows / max(seconds, 1e-9):,.0f} rows/s"
        try:
            folder = self._keep(parts, content)
        except OSError as error:
            return Found(content=content, said=f"tokens made ({rate}), not kept: {_cannot(error, self.root)}")
        self._prune(folder)
        kept = read_entry(folder, parts, verify=False)
        assert kept is not None, "what was just written is there"
        size = format_bytes(_size(folder))
        return Found(content=kept, said=f"tokens made, {reason} ({rate}; {size} kept in {folder})")

    def _keep(self, parts: KeyParts, content: Content) -> Path:
        """Write beside, then rename."""
        self._clear_dead()
        folder = self.entries / parts.key
        temporary = self._beside(parts, f"making-{socket.gethostname()}-{os.getpid()}")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            write_entry(temporary, parts, content)
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
        except BaseException as error:
            shutil.rmtree(temporary, ignore_errors=True)
            # Where locks do not work another process may have been faster: its entry is as good.
            if not (isinstance(error, OSError) and (folder / ENTRY).exists()):
                raise
        return folder

    def _clear_dead(self) -> None:
        """Remove what processes of this machine were writing when they died."""
        for folder in self.entries.glob(f"*.making-{socket.gethostname()}-*"):
            pid = folder.name.rpartition("-")[2]
            if pid.isdigit() and not Path("/proc", pid).exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _prune(self, newest: Path) -> None:
        """Keep the entries used last. Mapped files stay readable for who has them open."""
        for folder in self._by_age()[KEPT:]:
            if folder != newest:
                shutil.rmtree(folder, ignore_errors=True)
                folder.with_name(f"{folder.name}.lock").unlink(missing_ok=True)

    def _raise_what_another_raised(self, parts: KeyParts, since: float) -> None:
        """The mistake that another process of this run has met, instead of the same work again."""
        failure = self._beside(parts, "failed")
        try:
            if failure.stat().st_mtime < since:
                return
            text = failure.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        raise _error_from(text)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _cannot(error: OSError, root: Path) -> str:
    what = error.strerror or str(error)
    return f"{root}: {what}; LAUNCHER_CACHE=FOLDER chooses another place"


def _error_text(error: LauncherError) -> str:
    problems = [
        {"where": each.where, "what": each.what, "right": each.right, "type": each.type}
        for each in error.problems
    ]
    return json.dumps({"kind": type(error).__name__, "problems": problems})


def _error_from(text: str) -> LauncherError:
    told = json.loads(text)
    kind = getattr(launcher.errors, told["kind"], DataError)
    error: LauncherError = kind([Problem(**each) for each in told["problems"]])
    return error
