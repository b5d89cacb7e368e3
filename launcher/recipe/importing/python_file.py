"""Arguments that stand in a Python file: calls such as TrainingArguments(...), and dicts of arguments.

Unsloth's own calls are read beside them: what it says of model and pairs stands nowhere else.

The file is parsed, never run: only values that are written out are read, in place or under a name.
"""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem
from launcher.recipe.importing.python_values import NotWritten, Worth, worth_in
from launcher.recipe.provenance import shown

_PRINTED = re.compile(r"TrainingArguments\(\n(.*)\n\)", re.DOTALL)
_CALLS = ("TrainingArguments", "SFTConfig", "LoraConfig", "BitsAndBytesConfig")
# Of from_pretrained: what a recipe has a key for; a tokenizer's call says nothing of the kind.
_MODEL_WORDS = (
    *("attn_implementation", "trust_remote_code", "load_in_4bit", "load_in_8bit"),
    *("torch_dtype", "dtype"),
)
_TASKS = {"ForSequenceClassification": "classification", "ForCausalLM": "causal_lm"}
_UNSLOTH = ("FastLanguageModel", "FastModel", "FastLlamaModel", "FastQwen2Model", "FastMistralModel")
# Of a trainer's call, as TRL had them before its SFTConfig.
_TRAINER_WORDS = ("max_seq_length", "packing", "dataset_text_field", "neftune_noise_alpha")
_OF_PEFT = ("r", "lora_alpha", "lora_dropout", "target_modules", "use_rslora", "modules_to_save")
_PREFERENCES = re.compile(
    r"(DPO|GRPO|ORPO|KTO|PPO|CPO|XPO|RLOO|BCO|NashMD|OnlineDPO|Reward|PRM)(Trainer|Config)"
)
_NOT_DONE = {"ForSeq2SeqLM": "encoder-decoder models", "ForTokenClassification": "labels of single tokens"}
_DICTS = ("training_args", "training_arguments", "train_args", "args", "arguments")


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The keyword arguments of all calls together, and what was found on the way."""

    values: dict[str, Any] = field(hash=False)
    notes: tuple[str, ...] = ()
    task: str = ""


@dataclass(frozen=True)
class Computed:
    """A value that only running the file would give; shown as its text."""

    text: str

    def __str__(self) -> str:
        """The expression."""
        return self.text


def read_calls(path: Path, text: str) -> Calls:
    """The arguments in the file. Raises BadValue where there are none, or where it is no Python."""
    if printed := _PRINTED.fullmatch(text.strip()):
        return Calls(values=_printed(printed.group(1)), notes=("read from arguments as they are printed",))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise _refuse(f"{shown(path)}:{line}", "the file is not Python text") from error
    reading = _Reading(worth=worth_in(tree), path=path)
    for node in ast.walk(tree):
        reading.look_at(node)
    if not reading.values and not reading.beside.get("use_peft"):
        raise _refuse(shown(path), f"no call of {', '.join(_CALLS)} with keyword arguments is in the file")
    return reading.calls()


@dataclass
class _Reading:
    """What has been found in one file so far; `beside` says less than the calls of arguments do."""

    worth: Worth
    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    beside: dict[str, Any] = field(default_factory=dict)
    found: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    task: str = ""

    def calls(self) -> Calls:
        """All of it; where precision is asked of the card, nothing is said: `auto` asks it too."""
        values = {**self.beside, **self.values}
        asks = [key for key in ("bf16", "fp16") if "is_bf16_supported" in str(values.get(key))]
        for key in asks:
            del values[key]
        notes = [f"read from {', '.join(self.found)}; the file was not run", *self.notes]
        if asks:
            notes.append(f"{', '.join(asks)}: by what the card can; training.precision: auto does the same")
        if used := [*dict.fromkeys(self.worth.defaults_used)]:
            notes.append(f"by their defaults: {', '.join(f'--{each}' for each in used)}")
        return Calls(values=values, notes=tuple(notes), task=self.task)

    def look_at(self, node: ast.AST) -> None:
        """Take over what the part of the file says."""
        if isinstance(node, ast.Call):
            name = _called(node)
            if match := _PREFERENCES.fullmatch(name):
                raise _not_done(f"{shown(self.path)}:{node.lineno}", match[0])
            if name.endswith(_CALLS):
                self._arguments(node, name)
            elif name == "from_pretrained":
                self._model(node)
            elif name == "get_peft_model" and _owner(node).endswith(_UNSLOTH):
                self._unsloth_pairs(node)
            elif name == "load_dataset":
                self._rows(node)
            elif name.endswith("Trainer"):
                self._beside("model_name_or_path", _text(self._word(node, "model")))
                for word in _TRAINER_WORDS:
                    self._beside(word, self._word(node, word))
        elif (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(node.value, ast.Dict)
            and _target(node) in _DICTS
        ):
            self.found.append(f"{_target(node)} = {{...}} in line {node.lineno}")
            self.values |= self._dictionary(node.value)

    def _arguments(self, node: ast.Call, name: str) -> None:
        self.found.append(f"{name}(...) in line {node.lineno}")
        if name.endswith("SFTConfig"):
            self.task = self.task or "causal_lm"
        for word in node.keywords:
            if word.arg:
                self.values[_renamed(name, word.arg)] = self._value(word.value)
            elif isinstance(word.value, ast.Dict):
                self.values |= self._dictionary(word.value)
            else:
                self.notes.append(f"line {node.lineno}: **{ast.unparse(word.value)[:80]} was not read")
        if node.args and isinstance(place := self._value(node.args[0]), str):
            self.values.setdefault("output_dir", place)  # its first argument; the others are not read
        if len(node.args) > 1:
            self.notes.append(f"line {node.lineno}: arguments without a name were not read")
        if name.endswith("LoraConfig"):
            self.values.setdefault("use_peft", True)

    def _model(self, node: ast.Call) -> None:
        """`AutoModelForCausalLM.from_pretrained("NAME", ...)`; the class says the task."""
        owner = _owner(node)
        if owner.endswith(_UNSLOTH):
            self._unsloth_model(node)
            return
        if what := next((what for end, what in _NOT_DONE.items() if owner.endswith(end)), ""):
            self.notes.append(f"line {node.lineno}: {owner}: {what} are not trained here")
        task = next((task for end, task in _TASKS.items() if owner.endswith(end)), "")
        if not task:
            return
        self.task = self.task or task
        first = self._value(node.args[0]) if node.args else self._word(node, "pretrained_model_name_or_path")
        self._beside("model_name_or_path", _text(first))
        for name in _MODEL_WORDS:
            self._beside(name, self._word(node, name))

    def _unsloth_model(self, node: ast.Call) -> None:
        """`FastLanguageModel.from_pretrained(model_name=..., load_in_4bit=...)`, which packs unless told."""
        self.task = self.task or "causal_lm"
        self.found.append(f"{_owner(node)}.from_pretrained(...) in line {node.lineno}")
        first = self._value(node.args[0]) if node.args else self._word(node, "model_name")
        self._beside("model_name_or_path", _text(first))
        self._beside("max_seq_length", self._word(node, "max_seq_length"))
        is_full = self._word(node, "full_finetuning") is True
        packed = self._word(node, "load_in_4bit")
        if packed is None and not is_full and self._word(node, "load_in_8bit") is not True:
            self.notes.append("load_in_4bit: true, Unsloth's default")
        self._beside("load_in_4bit", not is_full if packed is None else packed)
        self._beside("load_in_8bit", self._word(node, "load_in_8bit"))

    def _unsloth_pairs(self, node: ast.Call) -> None:
        """`FastLanguageModel.get_peft_model(model, r=16, ...)`."""
        self.found.append(f"{_owner(node)}.get_peft_model(...) in line {node.lineno}")
        self._beside("use_peft", True)
        for word in _OF_PEFT:
            self._beside({"r": "lora_r"}.get(word, word), self._word(node, word))
        if self._word(node, "use_gradient_checkpointing") in (True, "unsloth"):
            self._beside("gradient_checkpointing", True)

    def _rows(self, node: ast.Call) -> None:
        """`load_dataset("json", data_files=...)`, or a name of the hub."""
        name = _text(self._value(node.args[0])) if node.args else None
        files = self._word(node, "data_files")
        if isinstance(files, str):
            self._beside("train_file", files)
        elif isinstance(files, dict):
            self._beside("train_file", _text(files.get("train")))
            self._beside("validation_file", _text(files.get("validation") or files.get("test")))
        elif files is None and name is not None and "/" in name:
            self._beside("dataset_name", name)

    def _beside(self, key: str, value: Any) -> None:
        if value is not None:
            self.beside.setdefault(key, value)

    def _word(self, node: ast.Call, name: str) -> Any:
        return next((self._value(word.value) for word in node.keywords if word.arg == name), None)

    def _dictionary(self, node: ast.Dict) -> dict[str, Any]:
        return {
            key.value: self._value(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }

    def _value(self, node: ast.expr) -> Any:
        """The value where it is written out; dotted names such as torch.bfloat16 as text."""
        try:
            return self.worth.of(node)
        except NotWritten:
            text = _unparsed(node)
            return text if text.startswith("torch.") and "(" not in text else Computed(text)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _unparsed(node: ast.expr) -> str:
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."


def _printed(text: str) -> dict[str, Any]:
    """`name=value,` lines as TrainingArguments prints itself: text without quotes, enumerations by name."""
    pairs = [line.rstrip().rstrip(",").partition("=") for line in text.splitlines() if "=" in line]
    return {name.strip(): _printed_value(value) for name, _, value in pairs}


def _printed_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return re.sub(r"^[A-Z]\w+\.([A-Z_]+)$", lambda match: match.group(1).lower(), text)


def _refuse(where: str, what: str) -> BadValue:
    return BadValue(
        Problem(
            where=where,
            what=what,
            right="a file with TrainingArguments(learning_rate=1e-5, ...), or the arguments as JSON",
            type="training_args.to_json_string() in your script prints them",
        )
    )


def _not_done(where: str, name: str) -> BadValue:
    return BadValue(
        Problem(
            where=where,
            what=f"{name}: training by preferences or rewards is not done here",
            right="SFTTrainer with SFTConfig, or Trainer with TrainingArguments",
            type="docs/not-here.md says what is not done",
        )
    )


def _owner(node: ast.Call) -> str:
    return _unparsed(node.func.value) if isinstance(node.func, ast.Attribute) else ""


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Name):
        return node.func.id
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _renamed(call: str, name: str) -> str:
    """LoraConfig's short names as the command lines have them."""
    return {"r": "lora_r"}.get(name, name) if call.endswith("LoraConfig") else name


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id.lower() if isinstance(target, ast.Name) else ""
