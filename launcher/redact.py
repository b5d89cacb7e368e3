"""Secrets taken out of everything that is saved or shown: the one place that knows what they look like.

Known by the name of the variable that holds it (its value is then taken out wherever it stands), by the name
in front of a value, or by its own form. Standard library only. What is taken out reads `(redacted)`.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "(redacted)"
LEAST_LENGTH = 6  # shorter values of such variables are switches: `TOKENIZERS_PARALLELISM=true`
# Names as in HF_TOKEN, AutodlAutoPanelToken, WANDB_API_KEY, aws_secret_access_key, PGPASSWORD, dbPassword.
_WORDS = r"token|secret|password|passwd|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credentials?"
_NAME = re.compile(
    rf"({_WORDS}|(^|_)auth)s?(_?(id|value|str|b64))?$|autodl.*(url|panel)|(^|_)pat$|^pypi.*", re.I
)
_HARMLESS = re.compile(
    r"(path|file|dir|sock|limit|length|count|_tokens|\b(pad|eos|bos|unk|sep|cls|mask)_token)$", re.I
)
_PROXY = re.compile(r"proxy$", re.I)
_IN_URL = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://)[^/\s@'\"]+@")
_FORMS = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}"
    r"|\bglpat-[\w-]{16,}|\bAKIA[0-9A-Z]{16}\b|\bxox[baprs]-[\w-]{10,}|\bpypi-[\w-]{16,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}"
)
_BEARER = re.compile(r"(\b(?:Bearer|Basic)\s+)[\w.~+/=-]{8,}", re.I)
# `hf_token=...`, `"api_key": "..."`, `--password ...`; the name ends in such a word: not `max_tokens`.
_NAMED = re.compile(
    rf"""((?:\b|_)[\w.-]*?(?:{_WORDS})["']?\s*(?:=|:\s|:(?=["'])|(?<=--password)\s)\s*["']?)"""
    r"""([^\s"',;&)}\]]{6,})""",
    re.I,
)
_UNSAID = re.compile(r"^(true|false|none|null|auto|\(redacted.*|\$\w+|\d+(\.\d+)?)$", re.I)
# What may still become one of the above once the rest of the line has come.
_BEGINS = re.compile(
    r"(\b(hf|gh[pousr]|github_pat)_\w*|\b(sk|pk|rk|pypi|glpat|xox[baprs])-[\w-]*|\bAKIA[0-9A-Z]*|\beyJ[\w.-]*"
    r"|[A-Za-z][A-Za-z0-9+.-]*://[^/\s@]*|(Bearer|Basic)\s+\S*"
    rf"|[\w.-]*({_WORDS})[\"']?\s*[=:]?\s*[\"']?\S*)$",
    re.I,
)


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name holds a secret."""
    return bool(_NAME.search(name)) and not _HARMLESS.search(name)


def secrets_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The values that may be shown nowhere, the longest first."""
    found = {value for name, value in environ.items() if is_secret_name(name) and _is_worth(value)}
    found |= {part for value in environ.values() for part in _url_secrets(value)}
    return tuple(sorted(found, key=len, reverse=True))


def _is_worth(value: str) -> bool:
    return len(value) >= LEAST_LENGTH and not _UNSAID.match(value)


def _url_secrets(value: str) -> Iterable[str]:
    """Passwords in the URLs of proxies, mirrors and databases."""
    for match in re.finditer(r"://[^/\s@:]*:([^/\s@]+)@", value):
        if _is_worth(match.group(1)):
            yield match.group(1)


def redact(text: str, secrets: Iterable[str] | None = None) -> str:
    """The text without secrets; `secrets` are known values (this process's environment where None)."""
    for secret in secrets_of(os.environ) if secrets is None else secrets:
        text = text.replace(secret, HIDDEN)
    text = _IN_URL.sub(rf"\1{HIDDEN}@", text)
    text = _FORMS.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _NAMED.sub(_hide_value, text)


def _hide_value(match: "re.Match[str]") -> str:
    front, value = match.groups()
    name = re.split(r"[\"'=:\s]", front.lstrip("_"))[0]
    return match.group() if _UNSAID.match(value) or _HARMLESS.search(name) else f"{front}{HIDDEN}"


def redacted_value(name: str, value: str) -> str:
    """A variable's value as it may be saved: hidden where the name says so, and inside it otherwise."""
    if is_secret_name(name) or _PROXY.search(name):
        return HIDDEN
    return redact(value)


def redacted_data(value: Any, name: str = "") -> Any:
    """Plain data with every text redacted, values behind secret names hidden."""
    if isinstance(value, dict):
        return {key: redacted_data(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_data(inner, name) for inner in value]
    return redacted_value(name, value) if isinstance(value, str) else value


class Stream:
    """Redaction of text that comes in pieces: what may be the beginning of a secret waits for its rest."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the secrets of that environment out."""
        self.secrets = secrets_of(environ)
        self.tail = ""

    def feed(self, text: str) -> str:
        """New text in, what may be shown out."""
        text = self.tail + text
        kept = self._held(text)
        self.tail = text[len(text) - kept :] if kept else ""
        return redact(text[: len(text) - kept], self.secrets)

    def rest(self) -> str:
        """What was held back when the stream ended."""
        text, self.tail = self.tail, ""
        return redact(text, self.secrets)

    def _held(self, text: str) -> int:
        """How many characters at the end may become a secret; none of a line that is over."""
        line = text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]
        if not line or len(line) > 4096:
            return 0
        begins = _BEGINS.search(line)
        held = len(line) - begins.start() if begins else 0
        for secret in self.secrets:
            ends = (
                size for size in range(min(len(secret), len(line)), 0, -1) if line.endswith(secret[:size])
            )
            held = max(held, next(ends, 0))
        return held
