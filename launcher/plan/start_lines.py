"""The lines that start compiled files, as a person types them: from the clone, or an installed package."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import launcher


@dataclass(frozen=True, kw_only=True)
class Compilation:
    """What the lines depend on: the folder, the run's name, processes, and variables that the cards need."""

    out: Path
    name: str
    num_ranks: int
    has_json: bool
    keeps_trainer: bool
    variables: dict[str, str]


def root() -> Path:
    """Where commands are meant to be typed: the clone's root, or wherever the package is installed."""
    return Path(launcher.__file__).resolve().parents[1]


def typed_path(path: Path) -> str:
    """As typed from the clone's root for what lies inside it, absolute otherwise."""
    whole = path.expanduser().absolute()
    inside = is_clone() and whole.is_relative_to(root())
    return whole.relative_to(root()).as_posix() if inside else str(whole)


def is_clone() -> bool:
    """Whether the package lies in its source tree; an installed one is started as a module."""
    return (root() / "pyproject.toml").is_file()


def start_lines(made: Compilation) -> tuple[str, ...]:
    """Accelerate's line, and DeepSpeed's where there is a JSON for it."""
    out, trainer = made.out, made.keeps_trainer
    recipe = [] if trainer else ["--recipe", typed_path(out / "recipe.yaml"), "--name", made.name]
    config = ["--config_file", typed_path(out / "accelerate.yaml")]
    lines = [["accelerate", "launch", *config, *_script("-m", trainer), *recipe]]
    if made.has_json:
        ds = [] if trainer else ["--ds", typed_path(out / "ds.json")]
        head = ["deepspeed", "--num_gpus", str(made.num_ranks), *_script("--module", trainer)]
        lines.append([*head, *ds, *recipe])
    variables = [f"{key}={value}" for key, value in made.variables.items()]
    return tuple(" ".join([*variables, shlex.join(line)]) for line in lines)


def _script(as_module: str, keeps_trainer: bool) -> list[str]:
    """What is started: one's own script, the clone's run.py, or the installed module."""
    if keeps_trainer:
        return ["train.py"]
    return ["launcher/run.py"] if is_clone() else [as_module, "launcher.run"]


def lines_text(commands: Sequence[str]) -> str:
    """The content of command.txt."""
    place = str(root()) if is_clone() else "any folder"
    return f"# one of these, from {place}\n" + "\n".join(commands) + "\n"
