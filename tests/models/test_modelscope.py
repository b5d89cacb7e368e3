"""ModelScope on loopback: fetched whole, resumed, hashed; taken only where the hub does not answer."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from launcher.errors import DoesNotFit, HardwareError
from launcher.hardware import free_space
from launcher.models import download as downloading
from launcher.models import modelscope
from launcher.models.options import ModelOptions
from launcher.models.source import find_model, hub_answers
from tests.serving import Handler, serving

ID = "Toy/model-0.5B"
FILES = {
    "config.json": b"{}",
    "model.safetensors": bytes(range(256)) * 512,
    "pytorch_model.bin": b"another form",
    "README.md": b"words",
    "tokenizer.json": b"[]",
}


@dataclass
class Site:
    """What is served: `cuts` answers end in the middle, `wrong` names come with changed bytes, once each."""

    cuts: int = 0
    wrong: set[str] = field(default_factory=set)
    got: list[tuple[str, str]] = field(default_factory=list)

    def listing(self) -> bytes:
        files = [
            {"Path": name, "Type": "blob", "Size": len(body), "Sha256": hashlib.sha256(body).hexdigest()}
            for name, body in FILES.items()
        ]
        return json.dumps(
            {"Code": 200, "Data": {"Files": [*files, {"Path": "deep", "Type": "tree"}]}}
        ).encode()

    def body(self, name: str) -> bytes:
        if name in self.wrong:
            self.wrong.discard(name)
            return bytes(len(FILES[name]))
        return FILES[name]


@contextmanager
def online(site: Site) -> Iterator[str]:
    class Hub(Handler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path != f"/api/v1/models/{ID}/repo" and not url.path.endswith("/repo/files"):
                self.send_error(404)
                return
            if url.path.endswith("/files"):
                self._send(200, site.listing(), 0)
                return
            name, begin = parse_qs(url.query)["FilePath"][0], self.headers.get("Range", "")
            site.got.append((name, begin))
            offset = int(begin.removeprefix("bytes=").rstrip("-") or 0)
            cut = len(FILES[name]) // 2 if name.endswith(".safetensors") and site.cuts > 0 else 0
            site.cuts -= bool(cut)
            self._send(206 if begin else 200, site.body(name)[offset:], cut)

        def _send(self, status: int, body: bytes, cut: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - cut])

    with serving(Hub) as url:
        yield url


def environ(url: str, tmp_path: Path) -> dict[str, str]:
    return {"MODELSCOPE_ENDPOINT": url, "MODELSCOPE_CACHE": str(tmp_path / "ms")}


def test_one_form_of_the_weights_arrives_whole_and_a_second_call_fetches_nothing(tmp_path: Path) -> None:
    site, said = Site(), []
    with online(site) as url:
        folder = modelscope.fetch(ID, say=said.append, environ=environ(url, tmp_path))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
            name: FILES[name] for name in ("config.json", "model.safetensors", "tokenizer.json")
        }
        assert folder == tmp_path / "ms/models/Toy/model-0___5B"
        site.got.clear()
        assert modelscope.fetch(ID, say=said.append, environ=environ(url, tmp_path)) == folder
    assert site.got == []
    assert "0 files, 0 B to fetch" in said[-2]
    assert modelscope.cached(ID, environ("", tmp_path)) == folder


def test_a_cut_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    site = Site(cuts=2)
    with online(site) as url:
        folder = modelscope.fetch(ID, say=lambda line: None, environ=environ(url, tmp_path))
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    begins = [begin for name, begin in site.got if name == "model.safetensors"]
    assert begins[0] == "" and all(begin.startswith("bytes=") for begin in begins[1:]) and len(begins) == 3


def test_wrong_bytes_are_fetched_again(tmp_path: Path) -> None:
    site, said = Site(wrong={"model.safetensors"}), []
    with online(site) as url:
        folder = modelscope.fetch(ID, say=said.append, environ=environ(url, tmp_path))
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert any("another hash" in line for line in said)


def test_a_download_that_never_ends_is_told_and_the_folder_does_not_count_as_whole(tmp_path: Path) -> None:
    with (
        online(Site(cuts=99)) as url,
        pytest.raises(HardwareError, match=r"model\.safetensors did not arrive"),
    ):
        modelscope.fetch(ID, say=lambda line: None, environ=environ(url, tmp_path))
    assert modelscope.cached(ID, environ("", tmp_path)) is None


def test_an_unknown_id_and_a_full_disk_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with online(Site()) as url:
        monkeypatch.setattr(free_space, "free_bytes", lambda place: 10)
        with pytest.raises(DoesNotFit, match="10 B are free"):
            modelscope.fetch(ID, say=lambda line: None, environ=environ(url, tmp_path))
    with pytest.raises(HardwareError, match="does not give 'Toy/model-0.5B'"):
        modelscope.fetch(ID, say=lambda line: None, environ=environ("http://127.0.0.1:1", tmp_path))


def test_b077_the_id_is_taken_where_the_hub_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ModelOptions(model_name_or_path="toy/model", modelscope_id=ID)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    hub_answers.cache_clear()
    site = Site()
    with online(site) as url:
        for name, value in environ(url, tmp_path).items():
            monkeypatch.setenv(name, value)
        assert downloading.download(options, say=lambda line: None) is None
    found = find_model(options)
    assert found.is_local and found.location == str(modelscope.cached(ID))
    assert "ModelScope's cache" in found.note
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert find_model(options).location == found.location
    hub_answers.cache_clear()
