"""Commands in a shell script: the starter, what it is told, the script, and the script's options.

Nothing is run and no file is opened. Variables that the script itself sets to plain values are filled in.
"""

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from launcher.recipe.scalars import read_scalar

_ASSIGNED = re.compile(
    r"""^\s*(?:export\s+|set\s+|\$env:)?([A-Za-z_]\w*)\s?(\+?)=\s?("[^"]*"|'[^']*'|\([^()]*\)|[^\s;&|()]*)\s*;?\s*$"""
)
_OPEN_VALUE = re.compile(r"""^\s*(?:export\s+)?[A-Za-z_]\w*\+?=(?:"[^"]*|\([^()]*)$""")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:\[[@*]\])?(?::?-([^}]*))?\}|(\w+))")
_ARRAY = re.compile(r"\"(\$\{\w+\[@\]\})\"")  # "${ARGS[@]}" is one word for each of its parts
_STARTERS = (
    *("python", "python3", "torchrun", "accelerate", "deepspeed"),
    *("llamafactory-cli", "axolotl", "trl", "swift"),
)
_TOOLS = ("llamafactory-cli", "axolotl", "trl", "swift")
_ENDS = ("&&", "||", "|", ";", "&", ">", ">>", "2>&1", "2>", "&>", "<")
_COUNTS = ("nproc_per_node", "num_processes", "num_gpus", "nproc-per-node", "num-processes")
_VALUED = {
    "torchrun": (
        "nnodes",
        "node_rank",
        "master_addr",
        "master_port",
        "rdzv_endpoint",
        "rdzv_backend",
        "rdzv_id",
    ),
    "accelerate": (
        "config_file",
        "num_machines",
        "machine_rank",
        "main_process_ip",
        "main_process_port",
        "mixed_precision",
        "dynamo_backend",
        "gpu_ids",
        "deepspeed_config_file",
        "zero_stage",
        "gradient_accumulation_steps",
        "gradient_clipping",
        "num_cpu_threads_per_process",
    ),
    "deepspeed": ("include", "exclude", "hostfile", "num_nodes", "master_addr", "master_port", "launcher"),
}


@dataclass(kw_only=True)
class Command:
    """One command line: `options` of the script; what the starter was told; files that it names."""

    starter: str = ""
    script: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    starter_options: dict[str, str] = field(default_factory=dict)
    num_processes: int | None = None
    file: str = ""


def commands_in(text: str) -> list[Command]:
    """Every command of the text that starts Python with options."""
    variables: dict[str, str] = {}
    found = []
    for line in _joined(text):
        if assigned := _ASSIGNED.match(line):
            name, adds, value = assigned.groups()
            value = _filled(value[1:-1] if value[:1] in ("(", '"', "'") else value, variables)
            variables[name] = f"{variables.get(name, '')} {value}".strip() if adds else value
            continue
        try:
            words = shlex.split(_filled(_ARRAY.sub(r"\1", line), variables), comments=True)
        except ValueError:
            continue  # quotes that do not close: no command that could be read
        for part in _parts(words):
            command = read_words(part, variables)
            if command.starter and (command.options or command.file or command.starter_options):
                found.append(command)
    return found


def _joined(text: str) -> list[str]:
    """The lines, those that go on put together: behind a backslash, inside an array or a quoted value.

    Comments between them are left out. PowerShell goes on behind a backtick, Windows' shell behind a caret.
    """
    lines: list[str] = []
    open_line = ""
    for line in text.replace("\r\n", "\n").splitlines():
        if open_line and line.lstrip().startswith("#"):
            continue
        if line.rstrip().endswith(("\\", " `", " ^")):
            open_line += line.rstrip()[:-1] + " "
            continue
        if _OPEN_VALUE.match(open_line + line):
            open_line += (re.sub(r"(^|\s)#.*$", "", line) if "=(" in open_line + line else line) + " "
            continue
        lines.append(open_line + line)
        open_line = ""
    return [*lines, *([open_line] if open_line.strip() else [])]


def _filled(line: str, variables: dict[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(3)
        return variables.get(name, match.group(2) if match.group(2) is not None else match.group(0))

    return _VARIABLE.sub(value, line)


def _parts(words: list[str]) -> list[list[str]]:
    """The words between the shell's own signs."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _ENDS or word.endswith(";"):
            if word not in _ENDS:
                parts[-1].append(word.rstrip(";"))
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def read_words(words: list[str], variables: dict[str, str] | None = None) -> Command:
    """One command's words: settings of the environment, the starter and its own, the script, its options."""
    command = Command()
    rest = [*words]
    environ = dict(variables or {})
    while rest and re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0]):
        name, _, value = rest.pop(0).partition("=")
        environ[name] = value
    while rest and rest[0] in ("nohup", "sudo", "time", "exec", "env", "srun"):
        rest.pop(0)
    if rest and rest[0].rsplit("/", 1)[-1] in _STARTERS:
        command.starter = rest.pop(0).rsplit("/", 1)[-1]
        _read_starter(command, rest)
        command.options = options_of(rest)
    if command.starter == "swift":
        _of_swift(command.options)
    if command.num_processes is None:
        command.num_processes = _from_environment(environ, command.starter)
    return command


def _of_swift(options: dict[str, Any]) -> None:
    """ms-swift's own names for model and method; the others are those of TrainingArguments."""
    if "model" in options:
        options["model_name_or_path"] = options.pop("model")
    kind = options.pop("train_type", options.pop("tuner_type", "lora"))
    if kind == "lora":
        options.setdefault("use_peft", True)
    elif kind != "full":
        options["train_type"] = kind
    if "quant_bits" in options:
        options[f"load_in_{options.pop('quant_bits')}bit"] = True


def _read_starter(command: Command, rest: list[str]) -> None:
    """Take the starter's own words off `rest`, up to and with the script."""
    starter = command.starter
    while rest:
        word = rest.pop(0)
        if word == "-m":
            module = rest.pop(0) if rest else ""
            if module in ("torch.distributed.run", "torch.distributed.launch"):
                starter = "torchrun"
                continue
            command.script = module
            break
        if word == "launch" and starter == "accelerate":
            continue
        if word in ("train", "sft", "pt") and starter in _TOOLS:
            command.script = f"{starter} {word}"
            break
        if word.startswith("-") and starter not in _TOOLS:
            _starter_option(command, starter, word.lstrip("-"), rest)
            continue
        command.script = word
        break
    if rest and rest[0].endswith((".yaml", ".yml", ".json")):
        command.file = rest.pop(0)


def _starter_option(command: Command, starter: str, word: str, rest: list[str]) -> None:
    name, equals, value = word.partition("=")
    plain = name.replace("-", "_")
    valued = plain in [each.replace("-", "_") for each in _COUNTS] or plain in _VALUED.get(starter, ())
    if not equals and valued and rest:
        value = rest.pop(0)
    command.starter_options[plain] = value or "true"
    if plain in ("nproc_per_node", "num_processes", "num_gpus") and value.isdigit():
        command.num_processes = int(value)
    if plain == "include" and ":" in value:
        command.num_processes = len([each for each in value.partition(":")[2].split(",") if each])


def _from_environment(environ: dict[str, str], starter: str) -> int | None:
    """Processes by NPROC_PER_NODE, or by one visible card; llamafactory-cli takes all that are visible."""
    count = environ.get("NPROC_PER_NODE", "")
    if count.isdigit() and int(count) > 0:
        return int(count)
    cards = [each for each in environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each.strip()]
    return len(cards) if len(cards) == 1 or (cards and starter == "llamafactory-cli") else None


def options_of(words: list[str]) -> dict[str, Any]:
    """`--key value`, `--key=value`, `key=value`, flags and lists of values, as plain values."""
    options: dict[str, Any] = {}
    rest = [*words]
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            name, equals, value = word.partition("=")
            options[name if equals else f"(word) {word}"] = read_scalar(value) if equals else word
            continue
        name, equals, value = word[2:].partition("=")
        values = [value] if equals else []
        while not equals and rest and not (rest[0].startswith("--") and len(rest[0]) > 2):
            values.append(rest.pop(0))
        options[name.replace("-", "_")] = _plain(values)
    return options


def _plain(values: list[str]) -> Any:
    if not values:
        return True
    read = [_bracketed(value) for value in values]
    return read[0] if len(read) == 1 else read


def _bracketed(value: str) -> Any:
    """A scalar, or JSON in brackets as these tools take it for blocks."""
    if value[:1] in "{[" and value[-1:] in "}]":
        import json

        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return read_scalar(value)
