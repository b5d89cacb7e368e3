"""Uses a trained model the way it was trained: same tokenizer, template, length and label names."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from launcher.data.batches_torch import collate
from launcher.data.templates import prompt_ids
from launcher.data.tokens import TokenStore
from launcher.errors import ExportError, Problem, RecipeError
from launcher.export.as_trained import data_options, tokens_of, typed_rows
from launcher.models.load_torch import load_model, quiet_loading
from launcher.models.options import ModelOptions
from launcher.train.final_model import FACTS, read_facts


class Predictor:
    """A trained model, loaded once."""

    def __init__(self, run: Path, *, unpacked: bool = False) -> None:
        """Load a run's final model; `unpacked`: a 4-bit or 8-bit base as the plain weights it stands for.

        Raises ExportError, RecipeError.
        """
        from transformers import AutoTokenizer

        _be_quiet()
        self.folder, self.facts = read_facts(run)
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise _no_tokenizer(self.folder, error) from error
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = self._load(unpacked=unpacked).to(self.device).eval()

    def _load(self, *, unpacked: bool) -> Any:
        if not (self.folder / "adapter_config.json").is_file():
            return self._weights(ModelOptions(model_name_or_path=str(self.folder)))
        from launcher.adapters.peft_torch import read_adapter

        options = ModelOptions.model_validate(self.facts["model"])
        try:
            base = self._weights(options)
        except RecipeError as error:
            raise _no_base(self.folder, options, error) from error
        if unpacked and options.is_quantised:
            base = base.dequantize()
        return read_adapter(base, self.folder)

    def _weights(self, options: ModelOptions) -> Any:
        return load_model(
            options,
            task=self.facts["task"],
            dtype=self.facts["weights_dtype"],
            label_names=tuple(self.facts["label_names"]),
            pad_token_id=self.tokenizer.pad_token_id,
            problem_type=self.facts.get("problem_type"),
        )

    def predict(self, texts: Sequence[str], *, max_new_tokens: int = 128) -> Iterator[dict[str, Any]]:
        """One result a text: label and probability, labels, a value, or the generated answer.

        Of a pair, the two texts stand around a tab; of a dialogue, earlier turns stand in front, with tabs.
        """
        for text in texts:
            if self.facts["task"] == "classification":
                yield self._classify(text)
            else:
                yield self._answer(text, max_new_tokens)

    @torch.inference_mode()
    def _classify(self, text: str) -> dict[str, Any]:
        """One text, or what of it was seen in several windows, as an evaluation of the run would see it."""
        options = data_options(self.folder, self.facts)
        rows = typed_rows([text], options, self.facts.get("layout") or "text_label")
        store = tokens_of(rows, self.tokenizer, options, self.facts)
        logits = [self._logits(store, index) for index in range(len(store))]
        return {"text": text, **self._found(torch.stack(logits).mean(0).float())}

    def _logits(self, store: TokenStore, index: int) -> Tensor:
        batch = collate(store, np.array([index]), self.tokenizer.pad_token_id)
        row = {name: tensor.to(self.device) for name, tensor in batch.items() if name != "labels"}
        found: Tensor = self.model(**row).logits[0]
        return found

    def _found(self, logits: Tensor) -> dict[str, Any]:
        """What the logits of one row say, by what the labels were in training."""
        names, kind = self.facts["label_names"], self.facts.get("problem_type")
        if kind == "regression":
            return {"value": round(float(logits[0]), 4)}
        if kind == "multi_label_classification":
            chances = {
                name: round(float(each), 4) for name, each in zip(names, logits.sigmoid(), strict=True)
            }
            return {"labels": [name for name in names if chances[name] > 0.5], "probabilities": chances}
        probabilities = logits.softmax(-1)
        best = int(probabilities.argmax())
        return {"label": names[best], "probability": round(float(probabilities[best]), 4)}

    @torch.inference_mode()
    def _answer(self, text: str, max_new_tokens: int) -> dict[str, Any]:
        ids = torch.tensor([self._prompt(text)], device=self.device)
        made = self.continued(ids, max_new_tokens)
        answer = self.tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True)
        return {"text": text, "answer": answer.strip()}

    @torch.inference_mode()
    def continued(self, ids: Tensor, max_new_tokens: int) -> Tensor:
        """The likeliest continuation: `ids` [1, length] and at most so many tokens more."""
        config = getattr(self.model, "active_peft_config", None)
        if getattr(config, "is_prompt_learning", False):
            return self._one_by_one(ids, max_new_tokens)
        made: Tensor = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            pad_token_id=self.tokenizer.pad_token_id,
            eos_token_id=self.tokenizer.eos_token_id,
        )
        return made

    def _one_by_one(self, ids: Tensor, max_new_tokens: int) -> Tensor:
        """Without a cache: slower, and right.

        PEFT 0.21 looks for the cache under the name that it had before transformers 5.24: its own `generate`
        leaves a prefix out, and puts a prompt in front of every single token, without an error.
        """
        for _ in range(max_new_tokens):
            logits = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
            token = logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, token], dim=1)
            if token.item() == self.tokenizer.eos_token_id:
                break
        return ids

    def _prompt(self, text: str) -> list[int]:
        """The ids in front of the answer, as in training."""
        template = self.facts["template"]
        if template:
            return prompt_ids(text, "", self.tokenizer, template)
        ids: list[int] = self.tokenizer(text)["input_ids"]
        return ids


def _be_quiet() -> None:
    """Keep what libraries tell one another from whoever asks for an answer: deprecations, missing kernels.

    Without cards DeepSpeed, which others import where it is installed, would say so on standard output.
    """
    quiet_loading()
    if not torch.cuda.is_available():
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    for category in (FutureWarning, UserWarning):
        warnings.filterwarnings("ignore", category=category, module=r"(peft|torch|transformers)\.")


def _no_base(folder: Path, options: ModelOptions, error: RecipeError) -> ExportError:
    """An adapter alone says nothing: it needs the weights that it was trained beside."""
    return ExportError(
        Problem(
            where=str(folder),
            what=f"the base of this adapter does not load: {error.problems[0].what}",
            right=f"{options.model_name_or_path}, as when it was trained",
            type=f"put it back there, or its new place into {folder / FACTS}: model.model_name_or_path",
        )
    )


def _no_tokenizer(folder: Path, error: Exception) -> ExportError:
    return ExportError(
        Problem(
            where=str(folder),
            what=f"the tokenizer does not load: {str(error).splitlines()[0][:200]}",
            right="the folder as training wrote it: tokenizer.json and tokenizer_config.json lie in it",
            type="copy it again; or the run's command with --resume, which exports it again",
        )
    )
