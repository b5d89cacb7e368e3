"""Brings a hub model into the hub's cache before a card is rented: room first, then the files, then hashes.

`huggingface_hub` downloads and resumes; it does not look at what it has written, so every file is held
against the hash that the hub gives: SHA-256 for large files, git's SHA-1 for small ones.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.errors import HardwareError, Problem
from launcher.models import modelscope
from launcher.models.arrived import digest_of, require_room
from launcher.models.options import ModelOptions
from launcher.models.source import HUB, find_model, hub_answers, is_hub_id, is_offline, unreachable
from launcher.units import format_bytes

_WEIGHTS = (".safetensors", ".bin")
_KEPT = (".json", ".txt", ".model", ".jinja", ".tiktoken", *_WEIGHTS)
_TRIES = 5


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """One file of a hub repository; `sha256` where the hub keeps it as a large file, else `git_sha1`."""

    name: str
    num_bytes: int
    sha256: str | None
    git_sha1: str | None


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """Where a model is, which commit it is, and how much of it came now."""

    folder: Path
    revision: str
    num_files: int
    num_bytes: int
    num_new_bytes: int


def needed_files(files: Iterable[HubFile], gguf_file: str | None = None) -> list[HubFile]:
    """What training reads: configuration, tokenizer, and one form of the weights.

    Safetensors where there are any; copies for other libraries and folders inside the repository are left.
    """
    top = [each for each in files if "/" not in each.name]
    if gguf_file:
        return [each for each in top if each.name == gguf_file or each.name.endswith((".json", ".txt"))]
    suffix = ".safetensors" if any(each.name.endswith(".safetensors") for each in top) else ".bin"
    kept = [each for each in top if each.name.endswith(_KEPT)]
    return [each for each in kept if not each.name.endswith(_WEIGHTS) or each.name.endswith(suffix)]


def download(options: ModelOptions, *, say: Callable[[str], object]) -> Downloaded | None:
    """The model in the hub's cache, whole and checked; None where it is a folder or a package already.

    Interrupted downloads go on where they stopped. Raises DoesNotFit before anything is fetched,
    RecipeError where the hub cannot be asked, HardwareError for files that stay broken.
    """
    if _wants_modelscope(options):
        say(f"{os.environ.get('HF_ENDPOINT') or HUB} does not answer: asking ModelScope")
        modelscope.fetch(str(options.on_modelscope), say=say)
        return None
    source = find_model(options)
    if source.is_local and Path(source.location).is_dir():
        return None
    if is_offline():
        raise unreachable(options, source, "HF_HUB_OFFLINE forbids asking the hub")
    return _fetch(options, say)


def _wants_modelscope(options: ModelOptions) -> bool:
    """Where its id there is known, and the hub neither answers nor is forbidden."""
    if options.on_modelscope is None or not is_hub_id(options) or is_offline():
        return False
    return not hub_answers(os.environ.get("HF_ENDPOINT") or HUB)


def _fetch(options: ModelOptions, say: Callable[[str], object]) -> Downloaded:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    name, endpoint = options.model_name_or_path, os.environ.get("HF_ENDPOINT") or HUB
    try:
        info: Any = HfApi(endpoint=endpoint).model_info(name, revision=options.revision, files_metadata=True)
    except (HfHubHTTPError, OSError) as error:
        raise unreachable(options, find_model(options), str(error)) from error
    files = needed_files(_listed(info), options.gguf_file)
    missing = sum(each.num_bytes for each in files if not _blob(name, each).is_file())
    require_room(cache_folder(name), missing, cache="the hub's cache", variable="HF_HOME")
    say(f"{name} at {info.sha}: {len(files)} files, {format_bytes(missing)} to fetch from {endpoint}")

    def fetch() -> str:
        wanted = [each.name for each in files]
        return snapshot_download(name, revision=info.sha, allow_patterns=wanted, endpoint=endpoint)

    folder = Path(_patiently(fetch, say))
    broken = [each for each in files if not _is_whole(folder / each.name, each)]
    for each in broken:  # once more, from nothing
        say(f"{each.name} is not what the hub says it is; fetching it again")
        (folder / each.name).resolve().unlink(missing_ok=True)
        (folder / each.name).unlink(missing_ok=True)
    if broken:
        _patiently(fetch, say)
        _require_whole(name, folder, broken)
    total = sum(each.num_bytes for each in files)
    return Downloaded(
        folder=folder, revision=info.sha, num_files=len(files), num_bytes=total, num_new_bytes=missing
    )


def _patiently(fetch: Callable[[], str], say: Callable[[str], object]) -> str:
    """Again after a cut line: what has arrived is kept. Raises HardwareError after the last try."""
    from huggingface_hub.errors import HfHubHTTPError

    # the root of its client's errors: httpx, httpx2 or requests
    transport: type[Exception] = HfHubHTTPError.__bases__[0]
    for attempt in range(1, _TRIES + 1):
        try:
            return fetch()
        except (OSError, transport) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            say(f"download stopped ({reason}); try {attempt} of {_TRIES}")
            last = error
    raise HardwareError(
        Problem(
            where="download",
            what=f"the hub's files did not arrive in {_TRIES} tries: {last}",
            right="a line to the hub, or to a mirror; what has arrived is kept",
            type="the same command again, or export HF_ENDPOINT=https://hf-mirror.com first",
        )
    ) from last


def _listed(info: Any) -> list[HubFile]:
    return [
        HubFile(
            name=each.rfilename,
            num_bytes=each.size or 0,
            sha256=each.lfs.sha256 if each.lfs else None,
            git_sha1=None if each.lfs else each.blob_id,
        )
        for each in info.siblings or ()
    ]


def cache_folder(name: str) -> Path:
    """Where the hub's cache keeps that model."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    return Path(os.environ.get("HF_HUB_CACHE", home / "hub")) / f"models--{name.replace('/', '--')}"


def _blob(name: str, file: HubFile) -> Path:
    return cache_folder(name) / "blobs" / (file.sha256 or file.git_sha1 or file.name)


def _is_whole(path: Path, file: HubFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.num_bytes:
        return False
    wanted = file.sha256 or file.git_sha1
    return wanted is None or _hash(path, file) == wanted


def _hash(path: Path, file: HubFile) -> str:
    """SHA-256 of the bytes, or git's name of a blob: SHA-1 of its header and the bytes."""
    begun = hashlib.sha256() if file.sha256 else hashlib.sha1(f"blob {file.num_bytes}\0".encode())
    return digest_of(path, begun)


def _require_whole(name: str, folder: Path, files: Iterable[HubFile]) -> None:
    broken = [each.name for each in files if not _is_whole(folder / each.name, each)]
    if broken:
        raise HardwareError(
            Problem(
                where=str(folder),
                what=f"{', '.join(broken)} of {name} arrived twice with another hash than the hub states",
                right="a mirror that serves the same bytes as the hub",
                type="unset HF_ENDPOINT, or name another mirror, then the same command",
            )
        )
