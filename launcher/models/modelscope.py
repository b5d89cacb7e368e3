"""A model from ModelScope under its id there, where the hub does not answer: listed, fetched, hashed.

Plain HTTP: its own client is a large package. Files lie where that client looks for them, so that either
finds what the other has brought. The API is the one its client speaks: a list with sizes and SHA-256, then
the files.
"""

import hashlib
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from launcher.errors import HardwareError, Problem
from launcher.models.arrived import digest_of, require_room
from launcher.units import format_bytes

_ENDPOINT, _REVISION = "https://www.modelscope.cn", "master"
_KEPT = (".json", ".txt", ".model", ".jinja", ".tiktoken", ".safetensors", ".bin")
_TIMEOUT_S, _CHUNK_BYTES, _TRIES = 30.0, 2**20, 5


def endpoint(environ: Mapping[str, str] = os.environ) -> str:
    """MODELSCOPE_ENDPOINT, or the site."""
    return (environ.get("MODELSCOPE_ENDPOINT") or _ENDPOINT).rstrip("/")


def cached(model_id: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that holds the model whole, in any of the places that its client has used; else None."""
    root = _root(environ)
    places = [
        root / above / name
        for above in ("models", "hub/models", "hub", "")
        for name in (_folder_name(model_id), model_id)
    ]
    return next((place for place in places if _is_whole_folder(place)), None)


def _root(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("MODELSCOPE_CACHE") or Path.home() / ".cache/modelscope").expanduser()


def _folder_name(model_id: str) -> str:
    """Its client writes a point in a name as three underscores."""
    return model_id.replace(".", "___")


def _is_whole_folder(place: Path) -> bool:
    if not (place / "config.json").is_file() or any(place.glob("*.part")):
        return False
    return any(place.glob("*.safetensors")) or any(place.glob("*.bin"))


def fetch(model_id: str, *, say: Callable[[str], object], environ: Mapping[str, str] = os.environ) -> Path:
    """The model in ModelScope's cache, whole and checked. Raises HardwareError or DoesNotFit."""
    folder = _root(environ) / "models" / _folder_name(model_id)
    base = f"{endpoint(environ)}/api/v1/models/{urllib.parse.quote(model_id)}/repo"
    files = [each for each in _listed(base, model_id) if not _is_here(folder, each)]
    missing = sum(int(each["Size"]) for each in files)
    require_room(folder, missing, cache="ModelScope's cache", variable="MODELSCOPE_CACHE")
    say(f"{model_id} of ModelScope: {len(files)} files, {format_bytes(missing)} to fetch")
    folder.mkdir(parents=True, exist_ok=True)
    for each in sorted(
        files, key=lambda file: file["Path"] == "config.json"
    ):  # last: its mark of a whole folder
        _fetch_file(base, each, folder, say)
    say(f"model: {folder}, whole and as ModelScope states")
    return folder


def _listed(base: str, model_id: str) -> list[dict[str, Any]]:
    """Configuration, tokenizer, and one form of the weights, of the top folder."""
    try:
        with urllib.request.urlopen(f"{base}/files?Revision={_REVISION}", timeout=_TIMEOUT_S) as answer:
            files = [each for each in json.load(answer)["Data"]["Files"] if each.get("Type") != "tree"]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException) as error:
        raise _not_there(model_id, error) from error
    files = [each for each in files if "/" not in each["Path"] and each["Path"].endswith(_KEPT)]
    if any(each["Path"].endswith(".safetensors") for each in files):
        files = [each for each in files if not each["Path"].endswith(".bin")]
    return files


def _is_here(folder: Path, file: Mapping[str, Any]) -> bool:
    path, size = folder / str(file["Path"]), int(file["Size"])
    return path.is_file() and path.stat().st_size == size


def _fetch_file(base: str, file: Mapping[str, Any], folder: Path, say: Callable[[str], object]) -> None:
    """Into `NAME.part`, going on where it stopped; renamed once its hash is the stated one."""
    part = folder / f"{file['Path']}.part"
    name = urllib.parse.quote(file["Path"])
    url = f"{base}?Revision={_REVISION}&FilePath={name}"
    reason = "no answer"
    for attempt in range(1, _TRIES + 1):
        try:
            _append(url, part, int(file["Size"]))
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            say(f"download of {file['Path']} stopped ({reason}); try {attempt} of {_TRIES}")
            continue
        if digest_of(part, hashlib.sha256()) == file.get("Sha256", "").lower() or not file.get("Sha256"):
            part.replace(folder / file["Path"])
            return
        reason = "it arrived with another hash than is stated"
        part.unlink()
        say(f"{file['Path']}: {reason}; fetching it again")
    raise _broken(folder, file["Path"], reason)


def _append(url: str, part: Path, num_bytes: int) -> None:
    held = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={held}-"} if held else {})
    if held < num_bytes or not part.is_file():
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            _write(answer, part, "ab" if answer.status == 206 else "wb")
    if part.stat().st_size != num_bytes:
        short = part.stat().st_size
        if short > num_bytes:
            part.unlink()
        raise OSError(f"{short} of {num_bytes} bytes")


def _write(answer: Any, part: Path, mode: str) -> None:
    with part.open(mode) as file:
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)


def _not_there(model_id: str, error: Exception) -> HardwareError:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return HardwareError(
        Problem(
            where="model.modelscope_id",
            what=f"ModelScope does not give '{model_id}' ({reason})",
            right="its id there, as its page says it, and a line to the site",
            type="model.modelscope_id=OWNER/NAME",
        )
    )


def _broken(folder: Path, name: str, reason: str) -> HardwareError:
    return HardwareError(
        Problem(
            where=str(folder),
            what=f"{name} did not arrive in {_TRIES} tries: {reason}",
            right="a line to ModelScope; what has arrived is kept",
            type="the same command again",
        )
    )
