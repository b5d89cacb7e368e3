"""One message to a person's phone when a run has ended: a POST with a token from the environment.

Whatever goes wrong here is one line for the log, and never the run's failure.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from launcher.hardware.platform_facts import find_platform

TOKEN_VARIABLE, URL_VARIABLE = "AUTODL_TOKEN", "LAUNCHER_NOTIFY_URL"
_USUAL_URL = "https://www.autodl.com/api/v1/wechat/message/send"
_TIMEOUT_S = 10.0
_LONGEST = 200


@dataclass(frozen=True, kw_only=True)
class Message:
    """What is sent: the API's three fields; longer texts are cut."""

    title: str
    name: str
    content: str

    def body(self) -> bytes:
        """As JSON."""
        fields = {"title": self.title[:20], "name": self.name[:50], "content": self.content[:_LONGEST]}
        return json.dumps(fields, ensure_ascii=False).encode()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to the address that was named, and to no other."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Never follow."""
        return


def missing_token(environ: Mapping[str, str] = os.environ) -> str | None:
    """What to type where no token is set; None where one is."""
    name = token_variable(environ)
    return None if environ.get(name) else f"no message will be sent: export {name}=$YOUR_TOKEN first"


def token_variable(environ: Mapping[str, str]) -> str:
    """The variable that holds the token."""
    platform = find_platform(environ)
    return platform.message_token if platform else TOKEN_VARIABLE


def send(message: Message, environ: Mapping[str, str] = os.environ) -> str:
    """Send it; the line for the log says whether it arrived. Never raises for what a network can do."""
    token = environ.get(token_variable(environ))
    if not token:
        return missing_token(environ) or ""
    platform = find_platform(environ)
    url = environ.get(URL_VARIABLE) or (platform.message_url if platform else _USUAL_URL)
    if not urlsplit(url).scheme.startswith("http"):
        return f"no message was sent: {URL_VARIABLE}={url} is no http address"
    headers = {"Authorization": token, "Content-Type": "application/json"}
    try:
        request = urllib.request.Request(url, data=message.body(), headers=headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S) as answer:
            return _verdict(answer.read(65536), url)
    except (urllib.error.URLError, OSError, ValueError) as error:
        return f"no message was sent: {_short(error)} from {urlsplit(url).hostname}; the run stays as it is"


def _short(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__).splitlines()[0][:_LONGEST]


def _verdict(answer: bytes, url: str) -> str:
    """The API answers 200 also where it refuses; its own code says which."""
    host = urlsplit(url).hostname
    try:
        found = json.loads(answer)
    except ValueError:
        return f"message sent to {host}"
    code = found.get("code") if isinstance(found, dict) else None
    if code in (None, "Success", 0, "0"):
        return f"message sent to {host}"
    return f"no message was sent: {host} says {str(code)[:60]}: {str(found.get('msg', ''))[:100]}"
