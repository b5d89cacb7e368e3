"""Whether the hub's hosts answer: its own, those of large files, a mirror, ModelScope. All asked at once.

Names and files may come from different hosts: metadata then arrives while weights stall. Which switch works
follows from which of them answer.
"""

import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.hardware.platform_facts import Platform
from launcher.models.options import ModelOptions
from launcher.models.source import HUB

TIMEOUT_S = 4.0


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hub or mirror, its older large files (LFS), newer ones (Xet), a mirror to advise, ModelScope."""

    hub: str = HUB
    lfs: str = "https://cdn-lfs.huggingface.co"
    xet: str = "https://cas-server.xethub.hf.co"
    mirror: str = "https://hf-mirror.com"
    modelscope: str = "https://www.modelscope.cn"


@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which of them answered."""

    hub: bool
    lfs: bool
    xet: bool
    mirror: bool
    modelscope: bool = False


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What the answers mean: whether a download would come, what was found, what to type."""

    works: bool
    found: str
    type: str = ""


def reach(hosts: Hosts, timeout_s: float = TIMEOUT_S) -> Reach:
    """Ask all of them, for at most `timeout_s` seconds together, looking up names included."""
    answers: dict[str, bool] = {}
    threads = [
        threading.Thread(target=_note_answer, args=(answers, name, url, timeout_s), daemon=True)
        for name, url in vars(hosts).items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s)
    return Reach(**{name: answers.get(name, False) for name in vars(hosts)})


def _note_answer(answers: dict[str, bool], name: str, url: str, timeout_s: float) -> None:
    answers[name] = answers_at(url, timeout_s)


def answers_at(url: str, timeout_s: float) -> bool:
    """Whether an HTTP server answers there: a refusal (404, 403) is an answer, a failure (5xx) is none."""
    try:
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=timeout_s):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False


def advise(found: Reach, hosts: Hosts, environ: Mapping[str, str], platform: Platform | None) -> Advice:
    """The switch that works, by what answered."""
    no_xet = environ.get("HF_HUB_DISABLE_XET", "0").lower() in ("1", "true", "yes", "on")
    if not found.hub:
        return _without_hub(found, hosts, platform)
    if hosts.hub != HUB and not _is_hub(hosts.hub):
        words = f"{hosts.hub} answers"
        if no_xet:
            return Advice(works=True, found=words)
        return Advice(
            works=found.xet, found=f"{words}; {_xet(found)}", type=_DISABLE if not found.xet else ""
        )
    if found.xet and not no_xet:
        return Advice(works=True, found=f"{hosts.hub} and its hosts of large files answer")
    if found.lfs:
        typed = "" if no_xet else _DISABLE
        return Advice(works=bool(no_xet), found=f"{hosts.hub} answers, {_xet(found)}, LFS does", type=typed)
    if found.xet:
        return Advice(
            works=False,
            found=f"{hosts.hub} and Xet answer, LFS does not, and HF_HUB_DISABLE_XET asks for LFS",
            type="unset HF_HUB_DISABLE_XET",
        )
    return Advice(
        works=False,
        found=f"{hosts.hub} answers, neither of its hosts of large files does: weights would stall at 0 %",
        type=_mirror(hosts) if found.mirror else _elsewhere(platform),
    )


def from_modelscope(found: Reach, model: ModelOptions, typed: str) -> str:
    """The line that brings the model from ModelScope: where the hub does not answer, and its id is known."""
    if found.hub or not found.modelscope or model.on_modelscope is None:
        return ""
    return f"launcher prepare {typed}   (takes {model.on_modelscope})"


_DISABLE = "export HF_HUB_DISABLE_XET=1"


def _is_hub(url: str) -> bool:
    return "huggingface.co" in url


def _xet(found: Reach) -> str:
    return "Xet does too" if found.xet else "its Xet store does not"


def _mirror(hosts: Hosts) -> str:
    return f"export HF_ENDPOINT={hosts.mirror} HF_HUB_DISABLE_XET=1"


def _without_hub(found: Reach, hosts: Hosts, platform: Platform | None) -> Advice:
    if found.mirror and hosts.mirror != hosts.hub:
        words = f"{hosts.hub} does not answer, {hosts.mirror} does"
        return Advice(works=False, found=words, type=_mirror(hosts))
    return Advice(works=False, found=f"{hosts.hub} does not answer", type=_elsewhere(platform))


def _elsewhere(platform: Platform | None) -> str:
    if platform is not None and platform.proxy_script is not None:
        return f"source {platform.proxy_script} ; unset HF_ENDPOINT"
    return (
        "model_name_or_path=FOLDER with the files, brought from another machine; then export HF_HUB_OFFLINE=1"
    )
