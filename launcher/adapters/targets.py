"""From an intent (attention, mlp, all-linear) or names to the linear layers of one model's blocks.

Works on names and class names only, so that it needs neither torch nor weights: the caller lists
the linear-like leaves of its module tree, on the meta device or for real.
"""

import re
from collections.abc import Iterable

from launcher.errors import Problem, RecipeError
from launcher.registry import nearest

_ATTENTION = re.compile(
    r"(^|\.)(self_attn|self_attention|attention|attn|self)(\.|$)|"
    r"(query_key_value|qkv|q_proj|k_proj|v_proj|o_proj|c_attn|W_pack)$"
)
_BLOCK_INDEX = re.compile(r"\.\d+\.")
_KEYS_AND_VALUES = re.compile(
    r"(^|[._])(k_proj|v_proj|key|value|key_proj|value_proj|k_lin|v_lin|"
    r"query_key_value|qkv_proj|c_attn|W_pack|wqkv)$"
)
_OUTPUT = re.compile(
    r"(^|\.)(o_proj|out_proj|out_lin|c_proj|[wW]o|down_proj|fc2|lin2|w2|dense_4h_to_h|output\.dense|"
    r"(self_)?attention\.dense)$"
)


def block_leaves(linear_names: Iterable[str]) -> list[str]:
    """The linear layers inside numbered blocks: heads, embeddings and poolers are left out."""
    return [name for name in linear_names if _BLOCK_INDEX.search(f".{name}")]


def _is_attention(name: str) -> bool:
    # BERT calls its MLP's linears intermediate.dense and output.dense, beside attention.output.dense.
    inside_block = _BLOCK_INDEX.split(f".{name}")[-1]
    return bool(_ATTENTION.search(inside_block))


def _leaf(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def resolve_targets(wanted: str | tuple[str, ...], linear_names: Iterable[str]) -> list[str]:
    """Full module names that the adapter goes beside, sorted as in the model.

    Raises RecipeError where nothing matches, naming the layers that exist.
    """
    leaves = block_leaves(linear_names)
    if wanted == "all-linear":
        chosen = leaves
    elif wanted == "attention":
        chosen = [name for name in leaves if _is_attention(name)]
    elif wanted == "mlp":
        chosen = [name for name in leaves if not _is_attention(name)]
    else:
        return _by_name([wanted] if isinstance(wanted, str) else [*wanted], leaves)
    return chosen or _refuse(str(wanted), leaves)


def outputs(linear_names: Iterable[str], *, attention: bool, mlp: bool) -> list[str]:
    """What each block's attention and its MLP put out: the projection back to the hidden width.

    It is known by its name (Phi-3 defines it first), else it is the last one of its sublayer.
    """
    ends: dict[tuple[str, bool], str] = {}
    for name in block_leaves(linear_names):
        place = (f".{name}"[: _first_index(name)], _is_attention(name))
        if _OUTPUT.search(name) or not _OUTPUT.search(ends.get(place, "")):
            ends[place] = name
    chosen = {name for (_, is_attention), name in ends.items() if (attention if is_attention else mlp)}
    return [name for name in block_leaves(linear_names) if name in chosen]


def keys_and_values(linear_names: Iterable[str]) -> list[str]:
    """The attention layers that make keys and values, fused ones included."""
    return [name for name in block_leaves(linear_names) if _KEYS_AND_VALUES.search(name)]


def _first_index(name: str) -> int:
    found = _BLOCK_INDEX.search(f".{name}")
    assert found is not None
    return found.end()


def _by_name(wanted: list[str], leaves: list[str]) -> list[str]:
    def matches(name: str, pattern: str) -> bool:
        return name == pattern or name.endswith(f".{pattern}")

    for pattern in wanted:
        if not any(matches(name, pattern) for name in leaves):
            _refuse(pattern, leaves)
    return [name for name in leaves if any(matches(name, pattern) for pattern in wanted)]


def _refuse(wanted: str, leaves: list[str]) -> list[str]:
    known = sorted({_leaf(name) for name in leaves})
    close = nearest(wanted, known)
    raise RecipeError(
        Problem(
            where="adapter.lora_target_modules",
            what=f"no linear layer of this model matches '{wanted}'",
            right=f"attention, mlp, all-linear, or names among: {', '.join(known)}",
            type=f"adapter.lora_target_modules={close or 'attention'}",
        )
    )
