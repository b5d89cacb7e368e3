"""An unknown key is told with what was probably meant."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("line", "right", "type_"),
    [
        ("learning_rate: 1e-4", "learning_rate belongs to training", "training: {learning_rate: 1e-4}"),
        (
            "training: {learning_rat: 3}",
            "training.learning_rate is the nearest",
            "training: {learning_rate: 3}",
        ),
        ("training: {max_length: 3}", "max_length belongs to data", "data: {max_length: 3}"),
        ("training: {learning-rate: 3}", "training.learning_rate", "training: {learning_rate: 3}"),
        ("trainin: {seed: 1}", "training is the nearest key", "training: {seed: 1}"),
        ("adapter: {method: full, lora_r: 8}", "adapter.method lora has it", "method: lora"),
        ("hardware: {output_dir: x}", "output_dir stands by itself", "output_dir: x"),
        ("hardware: {zzzz: x}", "keys of hardware: device, gpu, gpus", "launcher cat quickstart"),
        ("zzzz: x", "sections and keys: extends, summary", "launcher cat quickstart"),
        ("data: {train_file: a.csv, fill: {a: b}, fil: 1}", "data.fill", "data: {fill: 1}"),
    ],
)
def test_unknown_keys(write: Any, refuse: Any, line: str, right: str, type_: str) -> None:
    text = f"task: classification\nmodel: m\n{line}\n" + ("" if line.startswith("data") else "data: a.csv\n")
    (problem,) = refuse(write(whole=text)).problems
    assert problem.where == "job.yaml:3"
    assert right in problem.right
    assert problem.type == type_


def test_on_the_command_line_the_argument_to_type_is_given(write: Any, refuse: Any) -> None:
    (problem,) = refuse(write(), "learning_rte=1e-3").problems
    assert problem.type == "training.learning_rate=1e-3"
    (problem,) = refuse(write(), "lora_r=4").problems
    assert problem.type == "adapter.method=lora"
