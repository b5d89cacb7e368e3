"""What prepared tokens depend on, in parts that can be named when one of them has changed."""

import functools
import hashlib
import importlib.metadata
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launcher import __version__
from launcher.data.options import DataOptions
from launcher.data.place import source_root

# Options that change neither a row's tokens nor which rows there are. File names count by their content.
_WITHOUT_EFFECT = (
    "train_file",
    "eval_file",
    "source",
    "group_by_length",
    "pad_to_multiple_of",
    "micro_batch_tokens",
    "verify_cache",
    "dataloader_num_workers",
)


@dataclass(frozen=True, kw_only=True)
class KeyParts:
    """Hashes of all that tokens are made from; `place` names the training data, not its content."""

    data: str
    tokenizer: str
    settings: str
    model: str
    code: str
    place: str

    @property
    def key(self) -> str:
        """The name of the entry. A change of any part but the place gives another."""
        parts = {name: value for name, value in asdict(self).items() if name != "place"}
        return _hash(parts)[:32]

    def changes(self, other: dict[str, str]) -> list[str]:
        """The parts that differ from an entry's, in words."""
        words = {"data": "the data", "model": "the model", "code": "the program"}
        mine = asdict(self)
        names = [name for name in mine if name != "place" and other.get(name) != mine[name]]
        return [words.get(name, f"the {name}") for name in names]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def settings_part(
    options: DataOptions, *, task: str, seed: int, limit: int | None, token_types: bool = False
) -> str:
    """Every option that decides about rows or tokens; new options count without being named here."""
    chosen = options.model_dump(mode="json", exclude=set(_WITHOUT_EFFECT))
    files = [Path(name) for name in (options.train_file, options.eval_file) if name]
    names = [file.name for file in files]
    if "@folder" in options.columns.values():  # labels by the name of the folder, wherever that is
        names += [str(source_root(file).absolute().name) for file in files]
    return _hash([chosen, names, task, seed, limit, token_types])


def tokenizer_part(tokenizer: Any) -> str:
    """What the tokenizer does, whatever cutting and padding its last caller has left switched on."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    body = _rust(backend) if backend is not None else [sorted(tokenizer.get_vocab().items())]
    names = ("bos_token_id", "eos_token_id", "pad_token_id", "chat_template")
    marks = [getattr(tokenizer, name, None) for name in names]
    return _hash([type(tokenizer).__name__, marks, body, importlib.metadata.version("tokenizers")])


def _rust(backend: Any) -> str:
    truncation, padding = backend.truncation, backend.padding
    backend.no_truncation()
    backend.no_padding()
    try:
        text: str = backend.to_str()
    finally:
        if truncation is not None:
            backend.enable_truncation(**truncation)
        if padding is not None:
            backend.enable_padding(**padding)
    return text


@functools.cache
def code_part() -> str:
    """The program that reads and tokenises: its version and the text of this package."""
    folder = Path(__file__).parent
    digest = hashlib.sha256(__version__.encode())
    for file in sorted(folder.rglob("*.py")):
        digest.update(str(file.relative_to(folder)).encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
