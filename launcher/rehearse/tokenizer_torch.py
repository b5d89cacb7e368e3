"""A stand-in tokenizer for models whose own is not here: byte-level pieces learned from a few texts."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 600
_PAD, _START, _END, _UNKNOWN, _MASK = "<pad>", "<s>", "</s>", "<unk>", "<mask>"
_CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def write_stand_in(folder: Path, texts: Iterable[str], *, task: str, chat: bool) -> PreTrainedTokenizerFast:
    """Learn it, save it and give it. A classifier's puts a start and an end around every text."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(texts, _trainer())
    names = {"pad_token": _PAD, "eos_token": _END, "bos_token": _START, "unk_token": _UNKNOWN}
    if task == "classification":
        names |= {"cls_token": _START, "sep_token": _END, "mask_token": _MASK}
        ends = [(token, inner.token_to_id(token)) for token in (_START, _END)]
        inner.post_processor = processors.TemplateProcessing(
            single=f"{_START} $A {_END}", pair=f"{_START} $A {_END} $B {_END}", special_tokens=ends
        )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, **names)
    if chat:
        tokenizer.chat_template = _CHAT
    tokenizer.save_pretrained(folder)
    return tokenizer


def _trainer() -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[_START, _PAD, _END, _UNKNOWN, _MASK],  # RoBERTa counts positions from pad = 1
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
