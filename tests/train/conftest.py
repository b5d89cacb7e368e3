"""Small recipes over tiny models, in files, as a person would have them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import tiny

WriteRecipe = Callable[..., Path]


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models with and without dropout and data files, made once."""
    folder = tmp_path_factory.mktemp("material")
    tiny.write_bert(folder / "bert")
    tiny.write_bert(folder / "bert-dropout", dropout=0.1)
    tiny.write_llama(folder / "llama")
    tiny.write_csv(folder / "train.csv", 59)
    tiny.write_csv(folder / "eval.csv", 23, seed=5)
    tiny.write_instructions(folder / "instructions.json", 59)
    return folder


@pytest.fixture
def classifier(material: Path, tmp_path: Path) -> WriteRecipe:
    """Writes a classifier's recipe: 59 rows in steps of 12, the last of an epoch with 11; fp32, seed 7."""

    def write(model: str = "bert", method: str = "full", **training: object) -> Path:
        path = tmp_path / "job.yaml"
        path.write_text(classifier_text(material, tmp_path / "runs", model, method, **training))
        return path

    return write


def classifier_text(
    material: Path, runs: Path, model: str = "bert", method: str = "full", **training: object
) -> str:
    """The recipe that `classifier` writes."""
    return f"""task: classification
model: {{model_name_or_path: {material / model}}}
data: {{train_file: {material / "train.csv"}, eval_file: {material / "eval.csv"}, max_length: 40}}
adapter: {method}
{_training(training)}
output_dir: {runs}
"""


@pytest.fixture
def generator(material: Path, tmp_path: Path) -> WriteRecipe:
    """Writes a causal LM's recipe with LoRA on all linear layers and a chunked loss."""

    def write(model: str = "llama", method: str = "lora", **training: object) -> Path:
        path = tmp_path / "job.yaml"
        targets = ", lora_target_modules: all-linear, lora_r: 4" if method == "lora" else ""
        path.write_text(
            f"""task: causal_lm
model: {{model_name_or_path: {material / model}}}
data: {{train_file: {material / "instructions.json"}, eval_fraction: 0.2, max_length: 40, template: plain}}
adapter: {{method: {method}{targets}}}
{_training({"loss_chunk_bytes": 4000} | training)}
output_dir: {tmp_path / "runs"}
"""
        )
        return path

    return write


def _training(changes: dict[str, object]) -> str:
    values: dict[str, object] = {
        "global_batch_size": 12,
        "per_device_train_batch_size": 3,
        "learning_rate": 5e-3,
        "adam_epsilon": 1e-6,
        "num_train_epochs": 3,
        "warmup": 0.1,
        "logging_steps": 1,
        "precision": "fp32",
        "seed": 7,
    }
    return "training: {" + ", ".join(f"{key}: {value}" for key, value in (values | changes).items()) + "}"
