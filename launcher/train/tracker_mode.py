"""Whether a tracker may send: its own variable, the recipe, a key, and a host that answers."""

import netrc
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from launcher.registry import load_attribute

CONNECT_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """Where a tracker sends to, and where its package looks for a key.

    `own_url` is where the installed package keeps its default address, `url` what it is without that;
    `hosts` are further names under which a key may stand.
    """

    mode_variable: str
    key_variable: str
    url_variable: str
    url: str
    key_files: tuple[str, ...]
    login: str
    later: str
    own_url: str = ""
    hosts: tuple[str, ...] = ()


SERVICES = {
    "wandb": Service(
        mode_variable="WANDB_MODE",
        key_variable="WANDB_API_KEY",
        url_variable="WANDB_BASE_URL",
        url="https://api.wandb.ai",
        key_files=("~/.netrc", "~/_netrc"),
        login="wandb login",
        later="wandb sync {folder}/wandb/offline-run-*",
        own_url="wandb.sdk.lib.urls:DEFAULT_BASE_URL",  # 0.31 sends to another host than those before
        hosts=("api.wandb.ai",),
    ),
    "swanlab": Service(
        mode_variable="SWANLAB_MODE",
        key_variable="SWANLAB_API_KEY",
        url_variable="SWANLAB_API_HOST",
        url="https://api.swanlab.cn",
        key_files=("~/.swanlab/.netrc",),
        login="swanlab login",
        later="swanlab sync {folder}/swanlab/run-*",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Mode:
    """`online` or `offline` (or what the tracker's own variable says), and why not online."""

    name: str
    why: str = ""


def choose(service: Service, asked: str, environ: Mapping[str, str] = os.environ) -> Mode:
    """The person's word first (the variable, then the recipe); else online only where it can work."""
    own = environ.get(service.mode_variable)
    if own:
        return Mode(name=own, why=f"{service.mode_variable}={own}")
    if asked != "auto":
        return Mode(name=asked, why=f"tracker_mode={asked}")
    if not _has_key(service, environ):
        return Mode(name="offline", why=f"no key is set: type {service.login}")
    why = unreachable(_url(service, environ), environ)
    return Mode(name="offline", why=why) if why else Mode(name="online")


def _url(service: Service, environ: Mapping[str, str]) -> str:
    """The person's host, else the installed package's."""
    if given := environ.get(service.url_variable):
        return given
    if service.own_url:
        with suppress(ImportError, AttributeError):
            return str(load_attribute(service.own_url))
    return service.url


def _has_key(service: Service, environ: Mapping[str, str]) -> bool:
    """Whether a key is there; it is not read."""
    if environ.get(service.key_variable):
        return True
    hosts = [urlsplit(_url(service, environ)).hostname or "", *service.hosts]
    own = environ.get("NETRC")
    files = [Path(file).expanduser() for file in (*([own] if own else ()), *service.key_files)]
    return any(_names_host(file, host) for file in files for host in hosts)


def _names_host(file: Path, host: str) -> bool:
    try:
        return any(host in each or each in host for each in netrc.netrc(file).hosts)
    except (OSError, netrc.NetrcParseError):  # no such file, or one that nobody can read
        return False


def unreachable(url: str, environ: Mapping[str, str]) -> str:
    """Why nothing answers at `url` (or at the proxy that leads there); empty where something does."""
    proxy = environ.get("HTTPS_PROXY") or environ.get("https_proxy") or ""
    parts = urlsplit(proxy or url)
    host, port = parts.hostname or url, parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except OSError as error:
        return f"{host} cannot be reached ({error.strerror or error})"
    return ""
