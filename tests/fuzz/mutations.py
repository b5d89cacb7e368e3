"""Inputs made from shipped files: trees with a few values changed, texts and bytes with a few places changed.

A changed tree is written out again, so that it still parses; changed text may not.
"""

import copy
import json
from typing import Any

from hypothesis import strategies as st

# What a person, a careless script or an attacker may write where a value stands.
ODD = (
    *(None, True, False, 0, 1, -1, 2, 3, 10**12, -(10**18), 10**400, 1e308, -0.0, 1e-320),
    *(float("inf"), float("-inf"), float("nan"), "", " ", "\x00", "\n", "auto", "none", "no", "yes", "~"),
    *("1e-5", "0x10", "1_000", "١٢", "..", "../../etc/passwd", "/dev/null", "/proc/self/mem", "C:\\x"),
    *("hf://a/b", "http://u:p@h/x", "${HOME}", "{{x}}", "!!python/object:os.system", "&a", "*a", "%d %s {}"),
    *("é", "漢字", "\ud800".encode("utf-8", "replace").decode(), "\u202e", "\u2028", "\x85", "a" * 5000),
    *("2 epochs", "0.5 epochs", "-1 steps", "9e999 rows", "cpu", "nvme", "zero3", "lora", "qwen2", "fp16"),
    *([], {}, [[]], [{}], {"": None}, [None], ["a", 1], {"device": "cpu"}, {"stage": 3}, {"percentile": 95}),
    *({"name": "zero2"}, {"method": "lora"}, {"a": {"b": {"c": []}}}, [0.5, 1], ["x"] * 200),
)
odd_values = st.one_of(
    st.sampled_from(ODD),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.dictionaries(st.text(max_size=6), st.integers(), max_size=2),
    st.lists(st.one_of(st.integers(), st.text(max_size=4)), max_size=3),
)


def places(tree: Any) -> list[tuple[Any, ...]]:
    """The path of every value inside a tree of mappings and lists."""
    if isinstance(tree, dict):
        inner = [(key, value) for key, value in tree.items()]
    elif isinstance(tree, list):
        inner = list(enumerate(tree))
    else:
        return []
    return [path for key, value in inner for path in [(key,), *((key, *rest) for rest in places(value))]]


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


class Seeds:
    """Trees to begin from, and names of keys that exist somewhere in such files."""

    def __init__(self, trees: tuple[Any, ...], keys: tuple[str, ...] = ()) -> None:
        """All keys of the trees, and `keys`."""
        found = {str(part) for tree in trees for path in places(tree) for part in path}
        self.trees, self.keys = trees, tuple(sorted({*found, *keys}))


@st.composite
def mutated_tree(draw: st.DrawFn, seeds: Seeds) -> Any:
    """One of the trees with one to four changes."""
    keys = seeds.keys
    tree = copy.deepcopy(seeds.trees[draw(st.integers(0, len(seeds.trees) - 1))])
    for _ in range(draw(st.integers(1, 4))):
        known = places(tree)
        if not known:
            break
        path = draw(st.sampled_from(known))
        _change(draw, _at(tree, path[:-1]), path[-1], keys, tree)
    return tree


def _change(draw: st.DrawFn, holder: Any, key: Any, keys: tuple[str, ...], tree: Any) -> None:
    kind = draw(st.sampled_from(("value", "value", "value", "drop", "add", "rename", "copy")))
    if kind == "value":
        holder[key] = copy.deepcopy(draw(odd_values))  # or a later change would change the table
    elif kind == "drop":
        del holder[key]
    elif kind == "add" and isinstance(holder, dict):
        holder[draw(st.one_of(st.sampled_from(keys), st.text(max_size=6)))] = copy.deepcopy(draw(odd_values))
    elif kind == "rename" and isinstance(holder, dict):
        holder[draw(st.sampled_from(keys))] = holder.pop(key)
    elif kind == "copy":
        holder[key] = copy.deepcopy(_at(tree, draw(st.sampled_from(places(tree)))))


def as_yaml(tree: Any) -> str:
    """The tree as YAML: sections in blocks, values as JSON, which YAML 1.2 reads."""
    if not isinstance(tree, dict):
        return json.dumps(tree)
    return "".join(f"{_key(key)}:{_block(value)}\n" for key, value in tree.items())


def _key(key: Any) -> str:
    return json.dumps(str(key), ensure_ascii=True)


def _block(value: Any) -> str:
    if isinstance(value, dict) and value:
        return "".join(f"\n  {_key(key)}: {_scalar(inner)}" for key, inner in value.items())
    return f" {_scalar(value)}"


def _scalar(value: Any) -> str:
    """JSON writes NaN and Infinity, YAML .nan and .inf."""
    text = json.dumps(value)
    return {"NaN": ".nan", "Infinity": ".inf", "-Infinity": "-.inf"}.get(text, text)


_BITS = (
    *(
        b"",
        b"\n",
        b"\r",
        b"\r\n",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x80",
        b"\xc3",
        b"\x1f\x8b",
        b"\xff\xfe",
    ),
    *(
        b",",
        b";",
        b"\t",
        b'"',
        b'""',
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
        b"[" * 3000,
        b'{"a":' * 2000,
        b":",
        b": ",
    ),
    *(
        b"- ",
        b"&a ",
        b"*a",
        b"!!python/object/apply:os.system",
        b"? ",
        b"|",
        b">",
        b"---\n",
        b"%YAML 9.9\n",
        b"<<: ",
    ),
    *(
        b"NaN",
        b"1e999",
        b"null",
        b"\\u0000",
        b"\\ud800",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"a" * 2000,
        b"9" * 5000,
    ),
)


@st.composite
def mutated_bytes(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """One of the seeds with one to six places cut out, doubled, or written over."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.sampled_from((0, 1, 2, 5, 20, 200))))
        bits = draw(st.one_of(st.sampled_from(_BITS), st.binary(max_size=8)))
        kind = draw(st.sampled_from(("write", "write", "cut", "double")))
        middle = {"write": bits, "cut": b"", "double": data[start:stop] * 2}[kind]
        data = data[:start] + middle + data[stop:]
    return data
