"""Uses a trained model the way it was trained: same tokenizer, template, length and label names."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from launcher.data.templates import prompt_ids
from launcher.models.load_torch import load_model, quiet_loading
from launcher.models.options import ModelOptions
from launcher.train.final_model import read_facts


class Predictor:
    """A trained model, loaded once."""

    def __init__(self, run: Path) -> None:
        """Load a run's final model. Raises ExportError, RecipeError."""
        from transformers import AutoTokenizer

        quiet_loading()
        self.folder, self.facts = read_facts(run)
        self.tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = self._load().to(self.device).eval()

    def _load(self) -> Any:
        labels = tuple(self.facts["label_names"])
        options = ModelOptions.model_validate(self.facts["model"])
        is_adapter = (self.folder / "adapter_config.json").is_file()
        if not is_adapter:
            options = ModelOptions(model_name_or_path=str(self.folder))
        model = load_model(
            options,
            task=self.facts["task"],
            dtype=self.facts["weights_dtype"],
            label_names=labels,
            pad_token_id=self.tokenizer.pad_token_id,
        )
        if is_adapter:
            from launcher.adapters.peft_torch import read_adapter

            model = read_adapter(model, self.folder)
        return model

    def predict(self, texts: Sequence[str], *, max_new_tokens: int = 128) -> Iterator[dict[str, Any]]:
        """One result a text: label and probability, or the generated answer."""
        for text in texts:
            if self.facts["task"] == "classification":
                yield self._classify(text)
            else:
                yield self._answer(text, max_new_tokens)

    @torch.inference_mode()
    def _classify(self, text: str) -> dict[str, Any]:
        tokens = self.tokenizer(
            text,
            truncation=True,
            max_length=self.facts["max_length"],
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(self.device)
        chances = self.model(**tokens).logits[0].float().softmax(-1)
        best = int(chances.argmax())
        return {
            "text": text,
            "label": self.facts["label_names"][best],
            "probability": round(float(chances[best]), 4),
        }

    @torch.inference_mode()
    def _answer(self, text: str, max_new_tokens: int) -> dict[str, Any]:
        ids = torch.tensor([self._prompt(text)], device=self.device)
        made = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            pad_token_id=self.tokenizer.pad_token_id,
            eos_token_id=self.tokenizer.eos_token_id,
        )
        answer = self.tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True)
        return {"text": text, "answer": answer.strip()}

    def _prompt(self, text: str) -> list[int]:
        """The ids in front of the answer, as in training."""
        template = self.facts["template"]
        if template:
            return prompt_ids(text, "", self.tokenizer, template)
        ids: list[int] = self.tokenizer(text)["input_ids"]
        return ids
