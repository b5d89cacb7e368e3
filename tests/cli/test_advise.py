"""`launcher advise`: the recipe follows the rows and the card, is sound, and is planned to fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher.recipe.load import load_recipe

Run = Callable[..., tuple[int, str, str]]
QWEN3B, LLAMA8B, BERT = "Qwen/Qwen2.5-3B", "meta-llama/Llama-3.1-8B", "google-bert/bert-base-uncased"


def advised(run_verb: Run, path: Path, model: str, rows: int, gpu: str, *more: str) -> Any:
    words = ("--model", model, "--rows", str(rows), "--gpu", gpu, "--out", str(path), *more)
    code, _, err = run_verb("advise", *words)
    assert code == 0, err
    return load_recipe(str(path)).recipe


@pytest.mark.parametrize(
    ("model", "rows", "gpu", "method", "precision", "recomputes"),
    [
        (LLAMA8B, 5_000, "rtx3090", "lora", "bf16", None),
        ("bigscience/bloom-7b1", 5_000, "rtx4090", "lora", "bf16", None),
        (QWEN3B, 20_000, "a100_pcie_40", "full", "bf16", True),
        (QWEN3B, 500, "a100_pcie_40", "lora", "bf16", None),
        ("Qwen/Qwen2.5-0.5B", 200_000, "a100_pcie_40", "full", "bf16", None),
        ("Qwen/Qwen2.5-0.5B", 5_000, "v100_32_pcie", "full", "fp16", None),
        (BERT, 10_000, "rtx2080ti", "full", "fp16", None),
    ],
)
def test_rows_and_card_decide_method_and_precision(
    model: str,
    rows: int,
    gpu: str,
    method: str,
    precision: str,
    recomputes: bool | None,
    run_verb: Run,
    tmp_path: Path,
) -> None:
    path = tmp_path / "advised.yaml"
    found = advised(run_verb, path, model, rows, gpu)
    assert (found.adapter.method, found.training.precision) == (method, precision)
    if recomputes is not None:
        assert found.training.activation_checkpointing is recomputes
    assert run_verb("check", str(path))[0] == 0
    code, out, _ = run_verb("plan", str(path), "--json")
    assert code == 0 and json.loads(out)["asked"]["fits"]


def test_every_decision_stands_beside_its_reason(run_verb: Run) -> None:
    code, out, _ = run_verb("advise", "--model", LLAMA8B, "--rows", "800", "--gpu", "rtx3090")
    assert code == 0
    text = "\n".join(out.splitlines())
    for said in ("few rows (800)", "computes in bf16", "driver and margin counted", "steps"):
        assert said in text, text
    assert "p_tuning" in text


@pytest.mark.parametrize(
    ("model", "gpu", "optim"),
    [(LLAMA8B, "rtx3090", "adamw_torch_fused"), (QWEN3B, "a100_pcie_40", "paged_adamw_8bit")],
)
def test_adamw_stays_where_it_fits_and_smaller_states_have_their_reason(
    model: str, gpu: str, optim: str, run_verb: Run, tmp_path: Path
) -> None:
    path = tmp_path / "advised.yaml"
    assert advised(run_verb, path, model, 20_000, gpu).training.optim == optim
    assert ("AdamW's moments do not fit" in path.read_text(encoding="utf-8")) == (
        optim != "adamw_torch_fused"
    )


def test_rows_are_never_longer_than_the_positions_take(run_verb: Run, tmp_path: Path) -> None:
    found = advised(
        run_verb, tmp_path / "a.yaml", "FacebookAI/roberta-large", 300, "rtx3090", "--max-length", "600"
    )
    assert found.data.max_length == 512


def test_many_rows_try_every_weight_first_and_say_why_not(run_verb: Run) -> None:
    code, out, _ = run_verb(
        "advise", "--model", LLAMA8B, "--rows", "500000", "--gpu", "rtx3060", "--gpus", "1"
    )
    assert "# tried before: full: " in out or "method: full" in out
    assert code == 0


def test_several_cards_get_a_backend_for_several(run_verb: Run, tmp_path: Path) -> None:
    found = advised(run_verb, tmp_path / "a.yaml", QWEN3B, 150_000, "rtx4090", "--gpus", "4")
    assert found.hardware.gpus == 4 and found.backend.name not in ("single_gpu",)
    assert found.training.global_batch_size % 4 == 0


def test_a_small_model_on_several_cards_stays_whole_on_each(run_verb: Run, tmp_path: Path) -> None:
    found = advised(run_verb, tmp_path / "a.yaml", BERT, 900, "rtx3090", "--gpus", "3")
    assert found.backend.name == "multi_gpu"


def test_ones_own_file_stands_in_the_recipe(run_verb: Run, tmp_path: Path) -> None:
    rows = tmp_path / "mine.jsonl"
    rows.write_text('{"text": "one"}\n', encoding="utf-8")
    found = advised(run_verb, tmp_path / "a.yaml", QWEN3B, 3000, "h20", "--train-file", str(rows))
    assert found.data.train_file == str(rows)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--model", BERT, "--rows", "0", "--gpu", "rtx3090"), 2, "0 is too few"),
        (("--model", BERT, "--rows", "10", "--gpu", "rtx9090"), 2, "unknown GPU"),
        (("--model", "someone/unknown-13b", "--rows", "10", "--gpu", "rtx3090"), 3, "someone/unknown-13b"),
        (("--model", "bigscience/bloom", "--rows", "10", "--gpu", "rtx3080"), (1, 3), "bloom"),
    ],
)
def test_a_mistake_is_named_with_its_exit_code(
    words: tuple[str, ...], code: int | tuple[int, ...], says: str, run_verb: Run
) -> None:
    found, _, err = run_verb("advise", *words)
    assert found in (code if isinstance(code, tuple) else (code,)), err
    assert says in err


def test_a_file_that_is_there_is_left_alone(run_verb: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine", encoding="utf-8")
    words = ("--model", BERT, "--rows", "10", "--gpu", "rtx3090", "--out", str(path))
    assert run_verb("advise", *words)[0] == 2
    assert path.read_text(encoding="utf-8") == "mine"
