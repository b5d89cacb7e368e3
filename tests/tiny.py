"""Tiny models, tokenizers and data for tests: real architectures, random weights, made in a second."""

import csv
import json
import random
from pathlib import Path
from typing import Any

GOOD = ["good", "great", "fine", "lovely", "superb"]
BAD = ["bad", "awful", "poor", "dull", "dreadful"]
PLAIN = [
    "film",
    "plot",
    "actor",
    "scene",
    "story",
    "music",
    "the",
    "a",
    "is",
    "was",
    "and",
    "very",
    "not",
    "so",
]
WORDS = [*GOOD, *BAD, *PLAIN, "it", "this", "that", "of", "in", "on", "with"]


def write_tokenizer(folder: Path, *, chat: bool = False) -> Any:
    """A word-level tokenizer with BERT's special tokens (and end-of-text for language models)."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<eos>"]
    vocabulary = {word: index for index, word in enumerate([*special, *WORDS, "answer", ":", "question"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    if not chat:
        ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
        inner.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "<eos>"}
    names |= {} if chat else {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, **names)
    tokenizer.save_pretrained(folder)
    return tokenizer


def write_bert(
    folder: Path, *, kind: str = "bert", dropout: float = 0.0, seed: int = 1, **changes: Any
) -> Path:
    """A BERT-like classifier's folder: `kind` bert or roberta, two layers of width 32."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    tokenizer = write_tokenizer(folder)
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 64, "max_position_embeddings": 66, "vocab_size": len(tokenizer)}
    sizes |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout, "pad_token_id": 0}
    torch.manual_seed(seed)
    config = AutoConfig.for_model(kind, **(sizes | {"initializer_range": 0.2} | changes))
    AutoModelForSequenceClassification.from_config(config, dtype=torch.float32).save_pretrained(folder)
    return folder


def write_llama(folder: Path, *, dropout: float = 0.0, seed: int = 1, **changes: Any) -> Path:
    """A LLaMA-like causal LM's folder, two layers of width 32, four heads over two key-value heads."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    tokenizer = write_tokenizer(folder, chat=True)
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": len(tokenizer)}
    sizes |= {"max_position_embeddings": 128, "attention_dropout": dropout, "initializer_range": 0.2}
    sizes |= {"pad_token_id": 0, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    torch.manual_seed(seed)
    AutoModelForCausalLM.from_config(LlamaConfig(**(sizes | changes)), dtype=torch.float32).save_pretrained(
        folder
    )
    return folder


def sentences(rows: int, seed: int) -> list[tuple[str, str]]:
    """(text, label) of very different lengths; the label follows from the words."""
    draw = random.Random(seed)
    made = []
    for _ in range(rows):
        good = draw.random() < 0.5
        words = [draw.choice(PLAIN) for _ in range(draw.randint(2, 30))]
        words.insert(draw.randrange(len(words)), draw.choice(GOOD if good else BAD))
        made.append((" ".join(words), "positive" if good else "negative"))
    return made


def write_csv(path: Path, rows: int, seed: int = 3) -> Path:
    """A text,label file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(sentences(rows, seed))
    return path


def write_instructions(path: Path, rows: int, seed: int = 3) -> Path:
    """An instruction file whose answers have very different lengths."""
    draw = random.Random(seed)
    made = [
        {
            "instruction": " ".join(draw.choices(WORDS, k=draw.randint(2, 8))),
            "input": "",
            "output": " ".join(draw.choices(WORDS, k=draw.randint(1, 20))),
        }
        for _ in range(rows)
    ]
    path.write_text(json.dumps(made), encoding="utf-8")
    return path
