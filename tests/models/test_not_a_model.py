"""Paths that are given as a model and are none: what was meant is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.errors import RecipeError
from launcher.hardware.way_out import PROXIES
from launcher.models.options import ModelOptions
from launcher.models.source import ModelSource, find_model, unreachable
from launcher.recipe.check import check


def adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "a/base"}))


def run_of_a_model(folder: Path) -> None:
    (folder / "final").mkdir()
    (folder / "final/config.json").write_text("{}")


def run_of_an_adapter(folder: Path) -> None:
    (folder / "final").mkdir()
    adapter(folder / "final")


def cache(folder: Path) -> None:
    (folder / "snapshots/abc").mkdir(parents=True)
    (folder / "snapshots/abc/config.json").write_text("{}")


def gguf(folder: Path) -> None:
    (folder / "m.Q4.gguf").write_bytes(b"GGUF")


def metas_own(folder: Path) -> None:
    (folder / "params.json").write_text("{}")


def deeper(folder: Path) -> None:
    (folder / "llama").mkdir()
    (folder / "llama/config.json").write_text("{}")


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (adapter, "a/base, or launcher merge"),
        (run_of_a_model, "/final"),
        (run_of_an_adapter, "type:  launcher merge"),
        (cache, "snapshots/abc"),
        (gguf, "model.gguf_file=m.Q4.gguf"),
        (metas_own, "Hugging Face layout"),
        (deeper, "one folder deeper"),
    ],
)
def test_a_folder_that_is_no_model_is_told_for_what_it_is(
    tmp_path: Path, fill: Callable[[Path], None], said: str
) -> None:
    fill(tmp_path)
    with pytest.raises(RecipeError, match="is not a model folder") as caught:
        find_model(ModelOptions(model_name_or_path=str(tmp_path)))
    assert said in str(caught.value)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    gguf(tmp_path)
    with pytest.raises(RecipeError, match=r"model.gguf_file=m.Q4.gguf"):
        find_model(ModelOptions(model_name_or_path=str(tmp_path / "m.Q4.gguf")))


@pytest.mark.parametrize(
    ("endpoint", "reason", "typed"),
    [
        ("hf-mirror.com", "it does not answer", "export HF_ENDPOINT=https://hf-mirror.com"),
        ("", "403 Client Error. Cannot access gated repo for url", "hf auth login"),
        ("", "a/b is not a local folder and is not a valid model identifier", "the right id"),
        ("", "timed out", "or model.model_name_or_path=<folder>"),
    ],
)
def test_what_the_hub_said_tells_what_to_type(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, reason: str, typed: str
) -> None:
    for name in ("HF_HUB_OFFLINE", *PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    options = ModelOptions(model_name_or_path="a/b")
    source = ModelSource(location="a/b", is_local=False, note="")
    assert typed in str(unreachable(options, source, reason))


def test_what_this_shell_forbids_or_sends_elsewhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_ENDPOINT", *PROXIES):
        monkeypatch.delenv(name, raising=False)
    options, source = (
        ModelOptions(model_name_or_path="a/b"),
        ModelSource(location="a/b", is_local=False, note=""),
    )
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert "type:  unset HTTPS_PROXY" in str(unreachable(options, source, "timed out"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "unset HF_HUB_OFFLINE" in str(unreachable(options, source, "couldn't connect"))


def test_check_tells_a_model_folder_that_is_none(tmp_path: Path) -> None:
    adapter(tmp_path)
    found = check("quickstart", [f"model={tmp_path}", "pip_package=null"])
    assert found.only_data
    assert "a/base, or launcher merge" in found.problems[0].type
    (tmp_path / "config.json").write_text("{}")
    assert not check("quickstart", [f"model={tmp_path}", "pip_package=null"]).problems
    gone = check("quickstart", ["model=/no/such/folder", "pip_package=null"])
    assert "there is no folder" in gone.problems[0].what
