"""A process of its own that sees an exported model alone: reload it and write the logits of some texts."""

import json
import sys
from pathlib import Path

from safetensors.torch import save_file

from launcher.export.predict import Predictor
from launcher.rehearse.logits_torch import logits


def main(folder: str, texts_file: str, out_file: str) -> None:
    """Read texts, write `logits` by the number of their text."""
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    used = Predictor(Path(folder))
    found = logits(used.model, used.tokenizer, texts, used.facts["max_length"])
    save_file({f"{number:04d}": tensor.contiguous() for number, tensor in enumerate(found)}, out_file)


if __name__ == "__main__":
    main(*sys.argv[1:])
