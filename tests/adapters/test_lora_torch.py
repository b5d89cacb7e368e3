"""LoRA on real modules: what trains, in which type."""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from launcher.adapters.lora import LoraOptions
from launcher.adapters.lora_torch import apply
from tests import tiny


def test_pairs_are_fp32_over_a_half_precision_base(tmp_path: Path) -> None:
    base = AutoModelForCausalLM.from_pretrained(tiny.write_llama(tmp_path), dtype=torch.bfloat16)
    model = apply(base, LoraOptions(lora_target_modules="all-linear"), task="causal_lm")
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert trained and all("lora_" in name for name in trained)
    assert {p.dtype for p in trained.values()} == {torch.float32}
    assert {p.dtype for p in model.parameters() if not p.requires_grad} == {torch.bfloat16}


def test_a_new_classification_head_trains_whole(tmp_path: Path) -> None:
    base = AutoModelForSequenceClassification.from_pretrained(tiny.write_bert(tmp_path))
    model = apply(base, LoraOptions(), task="classification")
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert any("classifier" in name and name.endswith("weight") for name in trained)
    assert any("lora_B" in name for name in trained)
