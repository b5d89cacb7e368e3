"""What starters write about themselves, told apart from what the ranks write.

accelerate and torchrun print their own traceback when a rank has failed, deepspeed logs every
process: dropped, after the rank's exit code in it was read. Nothing else is held back, half lines
of progress bars least of all. Formats: accelerate 1.15, torch 2.13, deepspeed 0.19.
"""

import re
import signal
from dataclasses import dataclass, field

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LOG = re.compile(
    r"[WEI]\d{4} [\d:.]+ .*torch/distributed/(elastic|run)"
    r"|\[\d{4}-\d\d-\d\d [\d:,]+\] \[[A-Z]+\] \[(launch|runner|real_accelerator)\.py"
)
_MAY_BECOME_LOG = re.compile(r"[WEI]\d{0,4}( |$)|\[\d{0,4}(-|$)")
_STARTER_FRAME = re.compile(
    r'File ".*(/bin/(accelerate|torchrun|deepspeed)|torch/distributed/run\.py|accelerate/commands/\w+\.py'
    r'|deepspeed/launcher/\w+\.py)"'
)
_CHILD_FAILED = re.compile(
    r"(subprocess\.)?CalledProcessError|\S*ChildFailedError|\S*SignalException|KeyboardInterrupt"
)
_CODES = (
    re.compile(r"exitcode\s*: (-?\d+)"),
    re.compile(r"exits with return code = (-?\d+)"),
    re.compile(r"returned non-zero exit status (\d+)"),
)
_DIED = re.compile(r"died with <Signals\.(\w+)")
_TRACEBACK = "Traceback (most recent call last):"


@dataclass
class Noise:
    """A filter for one stream. `code` is the failed rank's exit code, once a starter has named it."""

    code: int | None = None
    _held: list[str] = field(default_factory=list)
    _tail: str = ""
    _passing: bool = False
    _rules_left: int = 0

    def feed(self, text: str) -> str:
        """New text in, what may be shown out. A line that cannot become noise is shown at once."""
        lines = (self._tail + text).splitlines(keepends=True)
        self._tail = ""
        shown = "".join(map(self._line, lines[:-1]))
        if not lines:
            return shown
        if lines[-1].endswith(("\n", "\r")) or not self._undecided(lines[-1]):
            return shown + self._line(lines[-1])
        self._tail = lines[-1]
        return shown

    def rest(self) -> str:
        """What was held back when the stream ended."""
        text, self._tail = "".join(self._held) + self._tail, ""
        self._held = []
        return "" if self._rules_left else text

    def _undecided(self, partial: str) -> bool:
        bare = _ANSI.sub("", partial)
        if self._passing:
            return False
        could = _TRACEBACK.startswith(bare[: len(_TRACEBACK)]) or _MAY_BECOME_LOG.match(bare)
        return bool(self._held or self._rules_left or could)

    def _line(self, line: str) -> str:
        bare = _ANSI.sub("", line).rstrip()
        if self._passing and not self._starts_noise(bare):
            self._passing = not line.endswith(("\n", "\r"))
            return line
        broken = "\n" if self._passing else ""  # a progress bar without its line end stands in front
        self._passing = not line.endswith(("\n", "\r"))
        return broken + self._fresh_line(line, bare)

    def _starts_noise(self, bare: str) -> bool:
        return bare.startswith(_TRACEBACK) or _LOG.match(bare) is not None

    def _fresh_line(self, line: str, bare: str) -> str:
        if self._rules_left:
            return self._in_summary(bare)
        if self._held:
            return self._in_traceback(line, bare)
        if bare.startswith(_TRACEBACK):
            self._held.append(line)
            return ""
        if _LOG.match(bare):
            self._note(bare)
            return ""
        return line

    def _in_traceback(self, line: str, bare: str) -> str:
        self._held.append(line)
        if not bare or bare[0].isspace():
            return ""
        held, self._held = self._held, []
        ours = not any(_STARTER_FRAME.search(frame) for frame in held) or not _CHILD_FAILED.match(bare)
        if ours:
            return "".join(held)
        self._note(bare)
        self._rules_left = 2 if "ChildFailedError" in bare else 0
        return ""

    def _in_summary(self, bare: str) -> str:
        """Torchrun's table stands between two rules; the last code in it is the first failure's."""
        self._note(bare)
        self._rules_left -= bare.startswith("=====")
        return ""

    def _note(self, bare: str) -> None:
        for pattern in _CODES:
            if match := pattern.search(bare):
                self.code = int(match.group(1))
        if match := _DIED.search(bare):
            self.code = -int(signal.Signals[match.group(1)])
