"""The configuration file on the command line of the `accelerate launch` above this process, if it shows.

Accelerate hands its ranks variables, not the file's name: misspelt keys inside a block are gone by then.
The processes above are looked up under /proc; where there is none, nothing is found.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_MOST_PARENTS = 6
_OPTION = "--config_file"


def config_file_above(environ: Mapping[str, str], proc: Path = Path("/proc")) -> Path | None:
    """The file that the nearest accelerate was started with, or its default one; None where unknown."""
    for pid in _parents(proc):
        words = _words(proc / str(pid))
        if not _is_accelerate(words):
            continue
        named = _named(words)
        if named is None:
            return _default(environ)
        folder = _folder(proc / str(pid))
        return None if folder is None else _if_file(folder / named)
    return None


def _parents(proc: Path) -> Iterator[int]:
    pid = os.getppid()
    for _ in range(_MOST_PARENTS):
        if pid <= 1:
            return
        yield pid
        pid = _parent_of(proc / str(pid))


def _parent_of(process: Path) -> int:
    """The fourth field of stat, behind a name in brackets that may hold spaces and brackets."""
    try:
        return int(
            (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
        )
    except (OSError, IndexError, ValueError):  # gone meanwhile, or no Linux
        return 0


def _words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _folder(process: Path) -> Path | None:
    """Where that process was started from: a relative name is meant from there."""
    try:
        return (process / "cwd").readlink()
    except OSError:
        return None


def _is_accelerate(words: Sequence[str]) -> bool:
    """`accelerate launch`, `accelerate-launch`, or one of their modules."""
    names = [Path(word).name for word in words[:4]]
    modules = ("accelerate.commands.launch", "accelerate.commands.accelerate_cli")
    return (
        "accelerate-launch" in names
        or any(word in modules for word in words[:4])
        or ("accelerate" in names and "launch" in names)
    )


def _named(words: Sequence[str]) -> str | None:
    """The option's value; options end where the script begins, and a script's own are not accelerate's."""
    for index, word in enumerate(words):
        name, equals, value = word.replace("--config-file", _OPTION, 1).partition("=")
        if name == _OPTION:
            return value if equals else next(iter(words[index + 1 : index + 2]), None)
        if word.endswith("run.py") or word == "launcher.run":
            return None
    return None


def _default(environ: Mapping[str, str]) -> Path | None:
    """The file that accelerate reads where none is named (accelerate 1.15: `accelerate config` writes it)."""
    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"
    return _if_file(Path(environ.get("HF_HOME") or cache).expanduser() / "accelerate" / "default_config.yaml")


def _if_file(path: Path) -> Path | None:
    return path.resolve() if path.is_file() else None
