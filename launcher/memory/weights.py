"""Weights as they are really held on the card: quantised, half, fp32, masters, and the adapter's."""

from launcher.memory.breakdown import Term
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, ranks_of

# Bytes an element of a quantised matrix.
# nf4/fp4: half a byte and an fp32 scale for 64 elements (QLoRA, arXiv:2305.14314); double quantisation
# holds the scales in 8 bits with an fp32 scale for 256 of them. GPTQ: int4, a 16-bit scale and a 4-bit zero
# for groups of 128, and a 32-bit group index a row (about 4 / 4,096). int8: a byte, and an fp32 scale a
# row (left out).
QUANTISED_BYTES = {
    "nf4": 0.5 + 4 / 64,
    "fp4": 0.5 + 4 / 64,
    "nf4 double": 0.5 + 1 / 64 + 4 / (64 * 256),
    "fp4 double": 0.5 + 1 / 64 + 4 / (64 * 256),
    "int8": 1.0,
    "gptq4": 0.5 + (2 + 0.5) / 128 + 4 / 4096,
    "gptq8": 1.0 + (2 + 1) / 128 + 4 / 4096,
}


def quantised_bytes(setting: Setting) -> float:
    """Bytes of one quantised element."""
    double = " double" if setting.double_quant and setting.quantisation in ("nf4", "fp4") else ""
    return QUANTISED_BYTES[setting.quantisation + double]


def weight_terms(setting: Setting, sizes: Sizes) -> list[Term]:
    """What is held of the weights between steps, a line a kind. Bytes of one rank."""
    share = ranks_of(setting) if setting.sharding.parameters else 1
    terms = _base_terms(setting, sizes, share)
    if setting.adapter is not None:
        parted = share if setting.sharding_kind != "none" else 1
        held = sizes.trained * sizes.trained_bytes
        terms.append(Term(name="adapter weights", num_bytes=held // parted, formula="p x dtype / ranks"))
    if has_master_copy(setting, sizes):
        divided = ranks_of(setting) if setting.sharding.optimizer_states else 1
        terms.append(Term(name="fp32 masters", num_bytes=4 * sizes.trained // divided, formula="4p / ranks"))
    return [term for term in terms if _is_on_card(term, setting)]


def has_master_copy(setting: Setting, sizes: Sizes) -> bool:
    """ZeRO clones what is trained into fp32 partitions, whatever its type; else only half weights need it.

    deepspeed/runtime/zero/stage_1_and_2.py: `single_partition_of_fp32_groups` (clone().float()), and
    stage3.py: `fp32_partitioned_groups_flat`.
    """
    return setting.sharding_kind in ("zero1", "zero2", "zero3") or sizes.has_masters


def _is_on_card(term: Term, setting: Setting) -> bool:
    if term.num_bytes == 0:
        return False
    if term.name == "fp32 masters":
        return not setting.sharding.offload_optimizer
    return not setting.sharding.offload_parameters


def _base_terms(setting: Setting, sizes: Sizes, share: int) -> list[Term]:
    if setting.quantisation == "none":
        held = setting.shape.num_params * sizes.weight_bytes // share
        return [Term(name="weights", num_bytes=held, formula="P x dtype / ranks")]
    linear = setting.shape.num_layers * sizes.block_linear
    rest = setting.shape.num_params - linear
    rest_bytes = 4 if setting.kbit_upcast and setting.sharding_kind == "none" else sizes.weight_bytes
    packed = int(linear * quantised_bytes(setting)) // share
    return [
        Term(
            name="quantised weights", num_bytes=packed, formula=f"{quantised_bytes(setting):.4g} x P_linear"
        ),
        Term(name="weights", num_bytes=rest * rest_bytes // share, formula=f"{rest_bytes} x P_rest"),
    ]
