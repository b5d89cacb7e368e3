"""Merges a LoRA adapter into its base, and believes the result only after comparing logits.

A base that was trained in 4 or 8 bits is unpacked first: the adapter was fitted to what the packed
weights stand for, so merging into the original weights would change what the model says. It is unpacked
before anything runs: on a CPU, bitsandbytes 0.50.2 repacks at the first forward pass, and what is
unpacked after that is wrong without an error.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from launcher.errors import ExportError, Problem
from launcher.export.mergeable import require_mergeable
from launcher.export.new_folder import new_folder
from launcher.export.predict import Predictor
from launcher.models.load_torch import DTYPES
from launcher.models.options import ModelOptions
from launcher.train.final_model import FACTS, SHARD

_ROWS, _TOKENS, _SEED = 4, 16, 0
# 16-bit weights round the sum: 8 bits of bf16 leave 4e-3 a weight, more after many layers.
_ALLOWED = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
_ALLOWED_PACKED = 1e-1  # packed products are computed in 16 bits, whatever the weights' type


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Where the merged model is, and the largest difference of its logits, relative to their size."""

    folder: Path
    difference: float


def merge(run: Path, out: Path) -> Merged:
    """Write the merged model to `out`, reload it from there, and compare.

    Raises ExportError where the reloaded model does not say the same or the system refuses to write,
    DoesNotFit where the disk is too small; nothing is left in `out` then.
    """
    require_mergeable(run)
    used = Predictor(run)
    dtype, options = used.facts["weights_dtype"], ModelOptions.model_validate(used.facts["model"])
    rows = _rows(used.model.config.vocab_size)
    wanted = _logits(used.model, rows)
    model = _merged(used if not options.is_quantised else Predictor(run, unpacked=True))
    allowed = max(_ALLOWED[dtype], _ALLOWED_PACKED if options.is_quantised else 0.0)
    size = sum(each.numel() * each.element_size() for each in model.parameters())
    with new_folder(out, needed_bytes=size, name="the merged model", option="--out") as temporary:
        model.save_pretrained(temporary, max_shard_size=SHARD)
        used.tokenizer.save_pretrained(temporary)
        (temporary / FACTS).write_text(json.dumps(used.facts, indent=2, ensure_ascii=False), encoding="utf-8")
        del model, used
        difference = _difference(wanted, _logits(Predictor(temporary).model, rows))
        if not difference <= allowed:
            raise _differs(out, difference, allowed)
    return Merged(folder=out, difference=difference)


def _rows(vocab_size: int) -> Tensor:
    generator = torch.Generator().manual_seed(_SEED)
    return torch.randint(0, vocab_size, (_ROWS, _TOKENS), generator=generator)


@torch.inference_mode()
def _logits(model: Any, rows: Tensor) -> Tensor:
    device = next(model.parameters()).device
    ids = rows.to(device)
    found: Tensor = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    return found.float().cpu()


def _difference(wanted: Tensor, found: Tensor) -> float:
    return float((wanted - found).abs().max() / wanted.abs().max().clamp_min(1e-12))


def _merged(used: Predictor) -> Any:
    """The base with the adapter inside, tied ends kept in step, ready to generate."""
    merged = used.model.merge_and_unload(safe_merge=True).to(DTYPES[used.facts["weights_dtype"]])
    merged.config.use_cache = True
    ends = merged.get_input_embeddings(), merged.get_output_embeddings()
    if getattr(merged.config, "tie_word_embeddings", False) and ends[1] is not None:
        # A loader ties again what the configuration calls tied, and would throw one side away.
        same = ends[0].weight is ends[1].weight or torch.equal(ends[0].weight, ends[1].weight)
        merged.config.tie_word_embeddings = same
    return merged


def _differs(out: Path, difference: float, allowed: float) -> ExportError:
    return ExportError(
        Problem(
            where=str(out),
            what=f"the merged model's logits differ by {difference:.1e} of their size; it was not kept",
            right=f"at most {allowed:.0e}, what rounding explains",
            type="the adapter beside its base (launcher predict RUN TEXT), or the same with dtype=float32",
        )
    )
