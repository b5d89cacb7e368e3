"""A message when a run ends, against a real server on this machine; whatever fails stays one line."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from launcher.process.message import Message, missing_token, send
from tests.serving import Handler, serving

MESSAGE = Message(title="run finished", name="quickstart", content="accuracy 0.8")


class Api:
    """What a pretended API answers, and what it got."""

    def __init__(self, status: int = 200, answer: bytes = b'{"code": "Success"}', location: str = "") -> None:
        self.status, self.answer, self.location = status, answer, location
        self.got: list[tuple[str, str, dict[str, Any]]] = []


@contextmanager
def sending(api: Api) -> Iterator[str]:
    class Pretended(Handler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            api.got.append((self.path, self.headers["Authorization"] or "", body))
            self.send_response(api.status)
            if api.location:
                self.send_header("Location", api.location)
            self.end_headers()
            self.wfile.write(api.answer)

        def do_GET(self) -> None:
            api.got.append((self.path, self.headers["Authorization"] or "", {}))
            self.send_response(200)
            self.end_headers()

    with serving(Pretended) as url:
        yield f"{url}/send"


def environ(url: str) -> dict[str, str]:
    return {"LAUNCHER_NOTIFY_URL": url, "AUTODL_TOKEN": "secret", "no_proxy": "127.0.0.1"}


def test_the_three_fields_and_the_token_arrive() -> None:
    api = Api()
    with sending(api) as url:
        assert send(MESSAGE, environ(url)).startswith("message sent to 127.0.0.1")
    assert api.got == [
        ("/send", "secret", {"title": "run finished", "name": "quickstart", "content": "accuracy 0.8"})
    ]


@pytest.mark.parametrize(
    ("api", "said"),
    [
        (Api(status=500), "Internal Server Error"),
        (Api(status=401), "Unauthorized"),
        (Api(answer=b'{"code": "AuthorizeFailed", "msg": "bad token"}'), "AuthorizeFailed: bad token"),
        (Api(status=302, location="/elsewhere"), "no message was sent"),
    ],
)
def test_a_refusal_is_one_line_without_the_token(api: Api, said: str) -> None:
    with sending(api) as url:
        line = send(MESSAGE, environ(url))
    assert line.startswith("no message was sent") and said in line
    assert "secret" not in line and "\n" not in line
    assert len(api.got) == 1  # a token is not carried to where a redirect points


def test_an_answer_that_is_no_json_counts_as_sent() -> None:
    with sending(Api(answer=b"<html>")) as url:
        assert send(MESSAGE, environ(url)).startswith("message sent")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "file:///etc/passwd", "nonsense"])
def test_an_address_that_nobody_answers_at_never_raises(url: str) -> None:
    assert send(MESSAGE, environ(url)).startswith("no message was sent")


def test_without_a_token_nothing_is_sent_and_the_line_to_type_is_told() -> None:
    api = Api()
    with sending(api) as url:
        line = send(MESSAGE, {"LAUNCHER_NOTIFY_URL": url})
    assert api.got == []
    assert "export AUTODL_TOKEN=" in line
    assert missing_token({"AUTODL_TOKEN": "x"}) is None


def test_long_texts_are_cut() -> None:
    body = json.loads(Message(title="t" * 99, name="n" * 99, content="c" * 999).body())
    assert [len(each) for each in body.values()] == [20, 50, 200]
