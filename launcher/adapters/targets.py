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
INTENTS = ("attention", "mlp", "all-linear")


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
