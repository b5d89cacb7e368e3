"""How the hub is reached from a rented machine: by a mirror or by a proxy, never by both at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.hardware.platform_facts import Platform

PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


@dataclass(frozen=True, kw_only=True)
class WayOut:
    """Variables to set, and lines for the person."""

    variables: dict[str, str] = field(default_factory=dict)
    lines: tuple[str, ...] = ()


def proxy_of(environ: Mapping[str, str]) -> str | None:
    """The first proxy variable that is set, or None."""
    return next((name for name in PROXIES if environ.get(name)), None)


def both_ways(environ: Mapping[str, str]) -> str | None:
    """A warning where a proxy and another hub than the usual one are both set; None otherwise."""
    proxy, endpoint = proxy_of(environ), environ.get("HF_ENDPOINT", "")
    if proxy is None or not endpoint or "huggingface.co" in endpoint or _is_local(endpoint):
        return None
    names = " ".join(sorted(set(PROXIES) & set(environ)))
    return (
        f"HF_ENDPOINT={endpoint} and {proxy} are both set: the mirror would be asked through the proxy, "
        f"which is slow or fails. Keep one: unset HF_ENDPOINT, or: unset {names}"
    )


def _is_local(endpoint: str) -> bool:
    return any(host in endpoint for host in ("//127.", "//localhost", "//[::1]"))


def way_out(platform: Platform, environ: Mapping[str, str]) -> WayOut:
    """The mirror where a person has chosen nothing; what they have chosen otherwise.

    Files on the hub's Xet store are fetched from another host that a mirror does not stand for: the store is
    switched off beside it.
    """
    if warning := both_ways(environ):
        return WayOut(lines=(warning,))
    offline = environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on")
    if offline or environ.get("HF_ENDPOINT"):
        return WayOut()
    if (proxy := proxy_of(environ)) is not None:
        return WayOut(lines=(f"hub: through the proxy in {proxy}; other traffic is slower while it is set",))
    found = {"HF_ENDPOINT": platform.mirror}
    if not environ.get("HF_HUB_DISABLE_XET"):
        found["HF_HUB_DISABLE_XET"] = "1"
    lines = [f"hub: {platform.mirror} (HF_ENDPOINT is yours to set; or: source /etc/network_turbo)"]
    if environ.get("HF_TOKEN") or (platform.home / ".cache/huggingface/token").is_file():
        lines.append("your hub token is sent to it too: export HF_HUB_DISABLE_IMPLICIT_TOKEN=1 keeps it here")
    return WayOut(variables=found, lines=tuple(lines))
