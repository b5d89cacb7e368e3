"""Real servers on loopback: every port is the kernel's choice, and nothing is left behind."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Answers without a word on the terminal."""

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def serving(handler: type[Handler]) -> Iterator[str]:
    """The address of a server with this handler, as long as the block runs."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))  # how soon it sees its end
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
