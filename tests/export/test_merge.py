"""Merged models say what base and adapter said together; what cannot be merged is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch

from launcher.adapters.options import METHODS
from launcher.cli.main import main
from launcher.errors import ExportError
from launcher.export import merge as merging
from launcher.export.predict import Predictor
from launcher.models.load_torch import load_model
from launcher.models.options import ModelOptions
from launcher.registry import load_attribute
from launcher.train.final_model import write_model
from tests import tiny

IDS = torch.tensor([[5, 9, 12, 7, 20]])


def finished(
    folder: Path,
    *,
    method: str = "lora",
    kind: str = "llama",
    model: dict[str, Any] | None = None,
    **base: Any,
) -> Path:
    """A run folder whose adapter has moved far from its start."""
    task = "causal_lm" if kind == "llama" else "classification"
    write = tiny.write_llama if kind == "llama" else tiny.write_bert
    write(folder / "base", hidden_size=64, intermediate_size=128, **base)
    options = ModelOptions.model_validate({"model_name_or_path": str(folder / "base"), **(model or {})})
    labels = () if kind == "llama" else ("no", "yes")
    loaded = load_model(options, task=task, dtype="float32", label_names=labels, pad_token_id=0)
    found = METHODS.get(method)
    wrapped: Any = load_attribute(found.apply)(loaded, found.options(), task=task)
    torch.manual_seed(3)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.2)
    weights = {name: value.detach() for name, value in wrapped.named_parameters()}
    tokenizer = tiny.write_tokenizer(folder / "tokenizer", chat=kind == "llama")
    facts = {
        "recipe": "r",
        "task": task,
        "model": options.model_dump(mode="json"),
        "label_names": list(labels),
    }
    facts |= {"weights_dtype": "float32", "max_length": 40, "template": "plain", "steps": 3}
    write_model(folder / "run" / "final", model=wrapped, tokenizer=tokenizer, weights=weights, facts=facts)
    return folder / "run"


def logits(folder: Path) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = (
            Predictor(folder).model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits
        )
    return found


@pytest.mark.parametrize("kind", ["llama", "bert"])
@pytest.mark.parametrize("method", ["lora", "ia3"])
def test_the_merged_model_says_the_same_without_an_adapter(kind: str, method: str, tmp_path: Path) -> None:
    run = finished(tmp_path, kind=kind, method=method)
    before = logits(run)
    done = merging.merge(run, tmp_path / "merged")
    assert done.difference <= 1e-4 and not (tmp_path / "merged" / "adapter_config.json").exists()
    assert torch.allclose(logits(tmp_path / "merged"), before, atol=1e-3)


def test_b013_tied_embeddings_stay_tied_and_right(tmp_path: Path) -> None:
    run = finished(tmp_path, tie_word_embeddings=True)
    before = logits(run)
    merging.merge(run, tmp_path / "merged")
    model = Predictor(tmp_path / "merged").model
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert torch.allclose(logits(tmp_path / "merged"), before, atol=1e-3)


def test_a_4_bit_base_is_merged_as_what_it_stands_for(tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes", reason="packed weights need bitsandbytes")
    run = finished(tmp_path, model={"load_in_4bit": True})
    before = logits(run)
    merging.merge(run, tmp_path / "merged")
    after = logits(tmp_path / "merged")
    assert (after - before).abs().max() <= 5e-2 * before.abs().max()
    # not what the unpacked original would have said
    plain = finished(tmp_path / "plain")
    assert (logits(plain) - before).abs().max() > 5e-2 * before.abs().max()


def test_a_merge_that_changes_the_logits_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = finished(tmp_path)
    monkeypatch.setitem(merging._ALLOWED, "float32", -1.0)
    with pytest.raises(ExportError, match="not kept"):
        merging.merge(run, tmp_path / "merged")
    assert not [path for path in tmp_path.iterdir() if "merged" in path.name]


@pytest.mark.parametrize("method", ["bottleneck", "prompt", "prefix"])
def test_what_is_no_change_of_weights_is_refused(method: str, tmp_path: Path) -> None:
    run = finished(tmp_path, method=method)
    with pytest.raises(ExportError, match="cannot be merged"):
        merging.require_mergeable(run)


def test_the_verbs_write_nothing_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tmp_path)
    assert main(["merge", str(run)]) == 0 and (run / "merged" / "config.json").is_file()
    assert main(["merge", str(run)]) != 0
    assert "exists already" in capsys.readouterr().err
    assert main(["export", str(run), "--to", str(tmp_path / "out")]) == 0
    assert "base_model:" in (tmp_path / "out" / "README.md").read_text()
    assert main(["export", str(run), "--to", str(tmp_path / "out")]) != 0


@pytest.mark.parametrize("method", [each.name for each in METHODS])
def test_the_lines_on_the_card_load_the_model(method: str, tmp_path: Path) -> None:
    """They are run as they stand, with the folder's name put in."""
    run = finished(tmp_path, method=method, kind="llama" if METHODS.get(method).needs_cache else "bert")
    assert main(["export", str(run), "--to", str(tmp_path / "out")]) == 0
    card = (tmp_path / "out" / "README.md").read_text()
    lines = card.partition("```python\n")[2].partition("```")[0].replace("FOLDER", str(tmp_path / "out"))
    known: dict[str, Any] = {}
    exec(lines, known)  # noqa: S102  our own text
    with torch.inference_mode():
        found = known["model"].eval()(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits
    assert torch.allclose(found, logits(run), atol=1e-5)


def test_a_run_that_is_not_finished_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path)]) != 0
    assert "no trained model" in capsys.readouterr().err
