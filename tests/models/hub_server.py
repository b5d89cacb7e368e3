"""A small hub on loopback: enough for `huggingface_hub`, with cut answers and wrong bytes on demand."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests import serving as loopback
from tests.serving import Handler

COMMIT = "a" * 40


@dataclass
class Hub:
    """One model's files. `cuts`: answers that end in the middle; `wrong`: names served with changed bytes."""

    files: dict[str, bytes]
    large: tuple[str, ...] = ()
    cuts: int = 0
    wrong: set[str] = field(default_factory=set)
    served: list[tuple[str, int]] = field(default_factory=list)
    endpoint: str = ""

    def etag(self, name: str) -> str:
        body = self.files[name]
        if name in self.large:
            return hashlib.sha256(body).hexdigest()
        return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()

    def tree(self) -> list[dict[str, Any]]:
        found = []
        for each in self.info()["siblings"]:
            entry = {"type": "file", "path": each["rfilename"], "size": each["size"], "oid": each["blobId"]}
            if "lfs" in each:
                entry["lfs"] = {"oid": each["lfs"]["sha256"], "size": each["size"], "pointerSize": 130}
            found.append(entry)
        return found

    def info(self) -> dict[str, Any]:
        siblings = []
        for name, body in self.files.items():
            entry: dict[str, Any] = {"rfilename": name, "size": len(body), "blobId": self.etag(name)}
            if name in self.large:
                entry["lfs"] = {"sha256": self.etag(name), "size": len(body), "pointerSize": 130}
            siblings.append(entry)
        return {"id": "toy/model", "modelId": "toy/model", "sha": COMMIT, "siblings": siblings}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub at `hub.endpoint` while the block runs."""

    class Answers(Handler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            if self.path.startswith("/api/models/toy/model"):
                is_tree = "/tree/" in self.path
                body = json.dumps(hub.tree() if is_tree else hub.info()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            else:
                self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            name = self.path.partition("?")[0].rpartition("/")[2]
            if name not in hub.files:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = hub.files[name]
            whole = len(body)
            start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
            self.send_response(206 if "Range" in self.headers else 200)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hub.etag(name)}"')
            self.send_header("Accept-Ranges", "bytes")
            if name in hub.large:
                self.send_header("X-Linked-Etag", f'"{hub.etag(name)}"')
                self.send_header("X-Linked-Size", str(whole))
            if "Range" in self.headers:
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            self.send_header("Content-Length", str(whole - start))
            self.end_headers()
            if with_body:
                self.write(name, body, start)

        def write(self, name: str, body: bytes, start: int) -> None:
            if name in hub.wrong:
                hub.wrong.discard(name)
                body = body[:-1] + bytes([body[-1] ^ 1])
            end = len(body)
            if name in hub.large and hub.cuts:
                hub.cuts -= 1
                end = start + max(1, (end - start) // 2)
            hub.served.append((name, start))
            self.wfile.write(body[start:end])
            if end < len(body):
                self.wfile.flush()
                self.close_connection = True

    with loopback.serving(Answers) as hub.endpoint:
        yield hub
