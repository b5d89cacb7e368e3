"""What a script's arguments are worth where names, sums and defaults stand for numbers; nothing is run."""

import ast
from pathlib import Path
from typing import Any

import pytest

from launcher.recipe.importing.importer import Imported, import_file
from launcher.recipe.importing.python_values import NotWritten, worth_in

HEAD = """
from transformers import AutoModelForSequenceClassification, TrainingArguments
MODEL, EPOCHS = "FacebookAI/roberta-large", 3
BATCH, MICRO = 64, 16
"""


def script(tmp_path: Path, text: str) -> Imported:
    path = tmp_path / "train.py"
    path.write_text(HEAD + text, encoding="utf-8")
    return import_file(path)


def worth(text: str, expression: str) -> Any:
    return worth_in(ast.parse(text)).of(ast.parse(expression, mode="eval").body)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("A", 4),
        ("A * 8", 32),
        ("B // A", 2),
        ("-A", -4),
        ('f"out/{N}-{A}"', "out/x-4"),
        ("[A, {'k': B}]", [4, {"k": 8}]),
    ],
)
def test_names_with_one_written_value_count(expression: str, value: Any) -> None:
    assert worth("A = 4\nB = A + 4\nN = 'x'", expression) == value


@pytest.mark.parametrize(
    "text",
    [
        "A = 1\nA = 2",
        "A = 1\nA += 1",
        "A = f()",
        "for A in (1, 2): pass",
        "A = 1\ndef f(A): pass",
        "from x import A\nA = 1",
        "A = A",
        "A = B\nB = A",
        "A = 1 / 0",
        "A, *B = 1, 2",
    ],
)
def test_a_name_that_may_be_something_else_does_not(text: str) -> None:
    with pytest.raises(NotWritten):
        worth(text, "A")


def test_values_that_grow_without_end_are_not_built() -> None:
    lists = "\n".join(f"a{n} = [a{n - 1}, a{n - 1}]" for n in range(1, 60))
    with pytest.raises(NotWritten):
        worth(f"a0 = [1]\n{lists}", "a59")
    texts = "\n".join(f"a{n} = f'{{a{n - 1}}}{{a{n - 1}}}'" for n in range(1, 60))
    with pytest.raises(NotWritten):
        worth(f"a0 = 'xy'\n{texts}", "a59")


def test_a_script_is_read_through_its_names(tmp_path: Path) -> None:
    found = script(
        tmp_path,
        """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-5)
args = parser.parse_args()
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=7)
rows = load_dataset("csv", data_files={"train": "train.csv", "validation": "dev.csv"})
arguments = TrainingArguments(
    f"out/{EPOCHS}", per_device_train_batch_size=MICRO, gradient_accumulation_steps=BATCH // MICRO,
    learning_rate=args.lr, num_train_epochs=EPOCHS,
    bf16=torch.cuda.is_bf16_supported(), fp16=not torch.cuda.is_bf16_supported(),
)
""",
    )
    values = found.values
    assert values["model.model_name_or_path"] == "FacebookAI/roberta-large"
    assert (values["task"], values["data.train_file"], values["data.eval_file"]) == (
        ("classification", "train.csv", "dev.csv")
    )
    assert values["training.global_batch_size"] == 64 and values["training.per_device_train_batch_size"] == 16
    assert values["training.learning_rate"] == 1e-5 and values["output_dir"] == "out/3"
    assert found.left == () and found.to_say == ()
    assert any("--lr" in note for note in found.notes) and any("bf16, fp16" in note for note in found.notes)


def test_a_batch_that_cannot_be_read_is_not_the_tools_default(tmp_path: Path) -> None:
    found = script(tmp_path, "a = TrainingArguments(per_device_train_batch_size=pick(), learning_rate=1e-4)")
    assert "training.per_device_train_batch_size" not in found.values
    assert "training.global_batch_size" not in found.values
    found = script(
        tmp_path, "a = TrainingArguments(per_device_train_batch_size=4, gradient_accumulation_steps=f())"
    )
    assert found.values["training.per_device_train_batch_size"] == 4
    assert "training.global_batch_size" not in found.values
    assert any("yours to say" in note for note in found.notes)


def test_few_arguments_in_python_are_never_another_tools(tmp_path: Path) -> None:
    found = script(tmp_path, "a = TrainingArguments('out', 1e-3, learning_rate=3e-5, **more())")
    assert found.dialect.name == "trainer"
    assert any("**more() was not read" in note for note in found.notes)
    assert any("without a name" in note for note in found.notes)
