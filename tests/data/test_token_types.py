"""The two texts of a pair are told apart as the model's own tokenizer does it, wherever rows meet a model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from launcher.data.batches_torch import collate, eval_batches
from launcher.data.cache_place import VARIABLE
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.tokens import TokenStore, tokenise
from tests import tiny

FIRSTS = ["the cat sat on the mat", "good", "", "a dog"]
SECONDS = ["not good", "the dog was very funny and good .", "a cat", "a cat sat on a mat"]


def store_of(tokenizer: Any, *, max_length: int = 500, token_types: bool = True) -> TokenStore:
    examples = Examples(
        layout="text_pair",
        texts={"text": FIRSTS, "pair": SECONDS},
        labels=np.array([0, 1, 0, 1]),
        lines=[2, 3, 4, 5],
        path=Path("a.csv"),
    )
    options = DataOptions(train_file="x", max_length=max_length)
    return tokenise(examples, tokenizer, options=options, task="classification", token_types=token_types)


def rows_of(store: TokenStore, name: str) -> list[list[int]]:
    return [part.tolist() for part in np.split(getattr(store, name), store.offsets[1:-1])]


@pytest.mark.parametrize("name", ["minilm_tokenizer", "word_tokenizer", "begin_tokenizer"])
def test_uncut_pairs_have_the_tokenizers_own_types(name: str, request: pytest.FixtureRequest) -> None:
    tokenizer = request.getfixturevalue(name)
    expected = tokenizer(FIRSTS, SECONDS, return_token_type_ids=True)
    store = store_of(tokenizer)
    assert rows_of(store, "input_ids") == expected["input_ids"]
    assert rows_of(store, "token_types") == expected["token_type_ids"]


@pytest.mark.parametrize("max_length", [5, 6, 9, 12])
def test_cut_pairs_change_their_type_behind_the_first_separator(
    minilm_tokenizer: Any, max_length: int
) -> None:
    store = store_of(minilm_tokenizer, max_length=max_length)
    for ids, types in zip(rows_of(store, "input_ids"), rows_of(store, "token_types"), strict=True):
        border = ids.index(102) + 1
        assert types == [0] * border + [1] * (len(ids) - border) and border < len(ids)


def test_batches_are_those_of_the_tokenizer_with_its_padding(minilm_tokenizer: Any) -> None:
    expected = minilm_tokenizer(FIRSTS, SECONDS, padding=True, return_tensors="pt")
    batch = collate(store_of(minilm_tokenizer), np.arange(4), minilm_tokenizer.pad_token_id)
    minilm_tokenizer.backend_tokenizer.no_padding()
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        assert torch.equal(batch[name], expected[name]), name


def test_a_rank_without_rows_and_evaluation_have_types_too(word_tokenizer: Any) -> None:
    store = store_of(word_tokenizer)
    nothing = collate(store, np.zeros(0, dtype=np.int64), 0)
    assert nothing["token_type_ids"].shape == nothing["input_ids"].shape
    assert all("token_type_ids" in batch for _, batch in eval_batches(store, 3, 0, 2, 0))


def test_models_without_types_get_none(word_tokenizer: Any) -> None:
    store = store_of(word_tokenizer, token_types=False)
    assert store.token_types is None and "token_type_ids" not in collate(store, np.arange(2), 0)


@pytest.mark.parametrize(
    ("kind", "changes", "has_types"), [("bert", {}, True), ("roberta", {"type_vocab_size": 1}, False)]
)
def test_the_model_decides_and_every_use_sees_what_its_own_call_sees(
    kind: str, changes: dict, has_types: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from launcher.precision_torch import StepPrecision
    from launcher.recipe.load import load_recipe
    from launcher.step.module import TrainModule
    from launcher.train.prepared import prepare_data

    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    folder = tiny.write_bert(tmp_path / "model", kind=kind, **changes)
    texts = [f"{first},{second},{number % 2}" for number, (first, second) in enumerate(PAIRS)]
    (tmp_path / "a.csv").write_text("\n".join(["premise,hypothesis,label", *texts]))
    recipe = tmp_path / "pairs.yaml"
    recipe.write_text(
        f"task: classification\nmodel: {{model_name_or_path: {folder}}}\n"
        f"data: {{train_file: {tmp_path / 'a.csv'}, max_length: 40}}\n"
    )
    for _ in range(2):  # made, then from the cache
        store = prepare_data(load_recipe(str(recipe)).recipe, say=print).store
        assert (store.token_types is not None) == has_types
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2).eval()
    module = TrainModule(
        model,
        task="classification",
        precision=StepPrecision(name="fp32", device_type="cpu"),
        chunk_bytes=None,
    )
    batch = collate(store, np.arange(len(store)), 0)
    ours = module.eval()(**batch)[1]
    firsts, seconds = zip(*PAIRS, strict=True)
    wanted = ["input_ids", "attention_mask"] + ["token_type_ids"] * has_types
    encoded = AutoTokenizer.from_pretrained(folder)(
        list(firsts), list(seconds), padding=True, return_tensors="pt", return_token_type_ids=True
    )
    theirs = model(**{name: encoded[name] for name in wanted}).logits
    assert torch.allclose(ours, theirs, atol=1e-6)
    predicted = predictions(folder, has_types)
    assert np.allclose(predicted, theirs.softmax(-1).max(-1).values.tolist(), atol=1e-3)
    if has_types:  # it matters
        assert not torch.allclose(
            theirs, model(input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]).logits
        )


def predictions(folder: Path, has_types: bool) -> list[float]:
    """Probabilities of a model folder as a run leaves it."""
    from launcher.export.predict import Predictor

    facts = {
        "task": "classification",
        "model": {"model_name_or_path": str(folder)},
        "label_names": ["a", "b"],
    }
    facts |= {"weights_dtype": "float32", "layout": "text_pair", "max_length": 40, "token_types": has_types}
    (folder / "launcher.json").write_text(json.dumps(facts))
    found = Predictor(folder).predict([f"{first}\t{second}" for first, second in PAIRS])
    return [each["probability"] for each in found]


PAIRS = [
    ("the film is good", "a bad plot"),
    ("the actor was dull", "this story is lovely and fine"),
    ("so", "very"),
] * 2
