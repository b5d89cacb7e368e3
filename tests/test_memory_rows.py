"""Published tables as other people write them: odd spellings, gaps and units, other harnesses and cards."""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_memory_accuracy import MISTRAL, accuracy

__all__ = ["accuracy"]

# Every column with what people put there; the first is a plain one.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "model_id": (
        "Mistral-7B",
        "mistralai/Mistral-7B-v0.1",
        "bert-base-uncased",
        "",
        "Qwen2.5-0.5B",
        "my model",
    ),
    "arch": (
        "mistral",
        "",
        "LlamaForCausalLM",
        "BERT",
        "t5",
        "mixtral",
        "mamba",
        "gpt_bigcode",
        "vit",
        "OPT",
    ),
    "params_total": ("7241732096", "", "7B", "7,241,732,096", "7.24e9", "n/a", "0", "-1", "350M", "1e400"),
    "hidden": ("4096", "", "4,096", "0", "-", "768", "4_096"),
    "layers": ("32", "", "24+24", "0", "12", "thirty-two"),
    "heads": ("32", "", "0", "7", "12"),
    "kv_heads": ("8", "", "0", "5", "n/a", "32"),
    "head_dim": ("128", "", "0", "64"),
    "intermediate": ("14336", "", "11008", "n/a", "0"),
    "vocab": ("32000", "", "32k", "128,256", "0"),
    "tied": ("no", "yes", "", "True", "n/a"),
    "method": (
        "LoRA",
        "full",
        "QLoRA",
        "",
        "Full fine-tuning",
        "FFT",
        "DoRA",
        "IA3",
        "P-Tuning v2",
        "prefix tuning",
        "LISA",
        "DPO (LoRA)",
        "BitFit",
        "VeRA",
        "pre-training",
        "lora+",
        "???",
    ),
    "lora_r": ("16", "", "64/128", "0", "100000", "r=8"),
    "lora_targets": ("q,k,v,o", "", "all-linear", "q_proj v_proj", "attention", "none"),
    "trainable_params": ("", "4.2M", "13631488", "0", "0.06%"),
    "weight_quant": (
        "",
        "none",
        "bnb nf4 (4-bit)",
        "int8",
        "AWQ int4",
        "bf16",
        "2-bit",
        "fp8",
        "HQQ 4 bit",
        "n/a",
    ),
    "double_quant": ("", "yes", "no", "1"),
    "weights_dtype": ("bfloat16; LoRA fp32", "fp32", "", "fp16", "AUTO", "bf16 + fp32 master", "fp8"),
    "mp_scheme": (
        "none (pure bf16)",
        "bf16 autocast",
        "",
        "fp16 AMP",
        "fp8 (TransformerEngine)",
        "tf32",
        "O2",
    ),
    "optimizer": (
        "torch AdamW (foreach)",
        "",
        "adamw_torch_fused",
        "paged_adamw_8bit",
        "Lion",
        "SGD momentum",
        "Adafactor",
        "Muon",
        "step in backward",
    ),
    "micro_batch": ("4", "", "1-4", "0", "4 per GPU", "-3", "1e9"),
    "seq_len": ("4096", "", "4k", "512/1024", "0", "max", "2,048"),
    "seq_mode": ("packed", "", "dynamic padding", "longest in batch", "???"),
    "grad_accum": ("1", "", "$(expr 16 / $n)", "0", "4"),
    "grad_ckpt": ("yes", "no", "", "False", "selective", "unsloth", "reentrant"),
    "attn": ("flash-attn 2", "", "eager", "SDPA", "xformers", "flex_attention"),
    "loss_impl": ("HF CE", "", "Liger", "chunked CE (8 chunks)", "classification head", "fused Triton"),
    "compile": ("no", "", "yes", "max-autotune"),
    "backend": (
        "single",
        "",
        "DDP",
        "FSDP2",
        "FSDP1 FULL_SHARD",
        "ZeRO-3",
        "zero3_offload",
        "DeepSpeed Z2",
        "ZeRO-Infinity",
        "Megatron TP=2",
        "device_map",
        "HSDP",
        "ColossalAI Gemini",
        "SHARD_GRAD_OP fsdp",
        "jax",
    ),
    "offload": (
        "none",
        "",
        "cpu",
        "params + optimizer to CPU",
        "optimizer",
        "yes",
        "nvme",
        "activations",
        "0",
    ),
    "n_gpus": ("1", "", "2", "2x4", "8 GPUs", "0", "many"),
    "gpu": (
        "A100-80GB",
        "",
        "RTX 4090",
        "H100-80GB",
        "4 x RTX 3090",
        "MI250",
        "NVIDIA GeForce RTX 3090 (24576 MiB)",
    ),
    "gpu_mem_gib": ("80", "", "24GB", "24576", "0", "?"),
    "figure_kind": ("peak", "oom", "OOM", "", "fits", "fits_max", "max_memory_allocated", "failed"),
    "mem_value": ("", "24.9", "26700000000"),
    "mem_unit": ("", "GiB", "bytes", "MB", "parsec"),
    "mem_gib": ("", "24.9", "n/a", "0"),
    "mem_measure": ("", "torch max_memory_allocated", "nvidia-smi", "reserved", "wandb", "guess"),
    "peak_alloc_gib": ("24.871", "", "0", "n/a"),
    "nvsmi_gib": ("28.883", "", "0"),
    "completeness": ("A", "B", "", "a"),
}


def variants(seed: int, number: int) -> Iterator[dict[str, str]]:
    """Every spelling of every column once, then rows with several odd cells at once."""
    for column, spellings in SPELLINGS.items():
        for text in spellings:
            yield MISTRAL | {column: text}
    for column in SPELLINGS:
        yield {key: value for key, value in MISTRAL.items() if key != column}
    source = random.Random(seed)
    for _ in range(number):
        odd = source.sample(sorted(SPELLINGS), source.randint(2, 12))
        yield MISTRAL | {column: source.choice(SPELLINGS[column]) for column in odd}


def test_every_row_has_a_figure_or_a_reason(accuracy: ModuleType) -> None:
    results = [accuracy.judge(row) for row in variants(seed=1, number=1500)]
    for result in results:
        assert (result.breakdown is None) == bool(result.reason), result.row
        assert "cannot be read" not in result.reason, (result.reason, result.row)
        if result.breakdown is not None:
            assert result.breakdown.peak_bytes > 0
            low, high = result.breakdown.process_bytes
            assert low <= high
    found, _ = accuracy.report([result.row for result in results])
    json.dumps(found, allow_nan=False)
    assert 0.2 < found["all_grades"]["coverage"] < 1


@pytest.mark.parametrize(
    ("column", "same"),
    [
        ("params_total", ("7,241,732,096", "7.241732096e9", "7B", "")),
        ("hidden", ("4,096", "4_096")),
        ("seq_len", ("4k", "4,096", "4096 tokens")),
        ("grad_ckpt", ("true", "True", "on", "1", "enabled")),
        ("grad_accum", ("", "1")),
        ("n_gpus", ("", "1", "1 GPU")),
        ("weight_quant", ("none", "no", "n/a", "bf16", "-")),
        ("offload", ("", "no", "None", "false", "0")),
        ("compile", ("", "False", "0")),
        ("arch", ("MistralForCausalLM", "Mistral")),
    ],
)
def test_the_same_thing_in_other_words_is_the_same_setting(
    accuracy: ModuleType, column: str, same: tuple[str, ...]
) -> None:
    plain = asdict(accuracy.read(MISTRAL).setting)
    for text in same:
        assert asdict(accuracy.read(MISTRAL | {column: text}).setting) == plain, text


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"method": "QLoRA"}, {"quantisation": "nf4"}),
        ({"weight_quant": "HQQ 4 bit"}, {"quantisation": "gptq4"}),
        ({"backend": "zero3_offload", "n_gpus": "4"}, {"sharding_kind": "zero3"}),
        ({"backend": "DeepSpeed Z2", "n_gpus": "2"}, {"sharding_kind": "zero2"}),
        ({"n_gpus": "2 nodes x 8", "backend": "FSDP2"}, {"num_ranks": 16, "sharding_kind": "fsdp2"}),
        ({"grad_ckpt": "selective"}, {"checkpointing": "selective"}),
    ],
)
def test_other_peoples_words_are_understood(
    accuracy: ModuleType, changes: dict[str, str], facts: dict[str, object]
) -> None:
    setting = accuracy.read(MISTRAL | changes).setting
    assert {key: getattr(setting, key) for key in facts} == facts


@pytest.mark.parametrize(
    ("changes", "optimizer", "parameters"),
    [
        ({"backend": "zero3_offload"}, True, True),
        ({"backend": "zero2 offload"}, True, False),
        ({"backend": "ZeRO-3", "offload": "cpu"}, True, True),
        ({"backend": "ZeRO-2", "offload": "cpu"}, True, False),
        ({"backend": "ZeRO-3", "offload": "optimizer"}, True, False),
        ({"backend": "ZeRO-3", "offload": "no"}, False, False),
        ({"backend": "FSDP2", "offload": "params to CPU"}, True, True),
        ({"backend": "FSDP2", "offload": "activations"}, False, False),
    ],
)
def test_what_is_offloaded_is_read_off_either_column(
    accuracy: ModuleType, changes: dict[str, str], optimizer: bool, parameters: bool
) -> None:
    facts = accuracy.read(MISTRAL | {"n_gpus": "4"} | changes).setting.sharding
    assert (facts.offload_optimizer, facts.offload_parameters) == (optimizer, parameters)


def test_a_known_models_sizes_need_not_be_given(accuracy: ModuleType) -> None:
    sizes = dict.fromkeys(
        ("arch", "hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate", "vocab"), ""
    )
    reading = accuracy.read(MISTRAL | sizes | {"model_id": "mistralai/Mistral-7B-v0.1"})
    assert reading.setting == accuracy.read(MISTRAL).setting
    assert "sizes of the catalogue's configuration" in reading.assumed


@pytest.mark.parametrize(
    ("changes", "gib"),
    [
        ({"gpu": "RTX 4090", "gpu_mem_gib": ""}, 23.64),
        ({"gpu": "RTX 3090", "gpu_mem_gib": "24576"}, 24.0),
        ({"gpu": "A100", "gpu_mem_gib": ""}, None),
        ({"gpu": "MI250", "gpu_mem_gib": ""}, None),
    ],
)
def test_a_cards_memory_is_known_where_its_name_says_it(
    accuracy: ModuleType, changes: dict[str, str], gib: float | None
) -> None:
    found = accuracy.read(MISTRAL | changes).figures.usable
    assert found == (None if gib is None else pytest.approx(gib, rel=1e-3))


@pytest.mark.parametrize("unit", [("26.70", "GB"), ("26700000000", "bytes"), ("25463.1", "MiB")])
def test_a_value_with_its_unit_is_a_figure(accuracy: ModuleType, unit: tuple[str, str]) -> None:
    row = MISTRAL | {"peak_alloc_gib": "", "mem_gib": "", "mem_value": unit[0], "mem_unit": unit[1]}
    figures = accuracy.read(row | {"mem_measure": "torch.cuda.max_memory_allocated()"}).figures
    assert figures.allocated == pytest.approx(24.866, rel=1e-3)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_headers_in_any_case_and_with_any_delimiter(
    accuracy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], delimiter: str
) -> None:
    head = delimiter.join(f" {key.upper()} " for key in MISTRAL)
    cells = delimiter.join(f'"{value}"' for value in MISTRAL.values())
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + f"{head}\r\n{cells}\r\n\r\n{cells}{delimiter}more".encode())
    assert accuracy.main([str(path), "--json"]) == 0
    overall = json.loads(capsys.readouterr().out)["overall"]
    assert overall["rows"] == 2 and overall["coverage"] == 1


def test_an_empty_file_and_one_that_is_not_there_are_told(
    accuracy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("", encoding="utf-8")
    assert accuracy.main([str(empty), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["rows"] == 0
    assert accuracy.main([str(tmp_path / "absent.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err
