"""How other tools' values are read: yes and no, numbers, lists, intervals. Each may raise `Nothing`."""

from collections.abc import Callable, Collection
from typing import Any, get_args

from launcher.recipe.importing.table import Nothing, Read, as_it_is
from launcher.recipe.scalars import read_scalar
from launcher.recipe.tracking import Tracker

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0", "none", "null", "")


def truth(value: Any) -> bool:
    """A yes or no as any of these tools write it. Raises Nothing for none and auto, ValueError otherwise."""
    if value is None or value == "auto":
        raise Nothing
    text = str(value).strip().lower()
    if text in _YES or text in _NO:
        return text in _YES
    raise ValueError("true or false is wanted")


def is_on(value: Any) -> bool:
    """Whether a value switches something on; what is no yes or no does not."""
    try:
        return truth(value)
    except (Nothing, ValueError):
        return False


def yes(meaning: Any) -> Read:
    """`meaning` where the value is yes; a no says nothing."""

    def how(value: Any) -> Any:
        if not truth(value):
            raise Nothing
        return meaning

    return how


def number(value: Any) -> int | float:
    """A number, also as text: PyYAML leaves 1e-5 a text. Raises ValueError for what is none."""
    found = read_scalar(value.strip()) if isinstance(value, str) else as_it_is(value)
    as_it_is(found)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return found
    raise ValueError("a number is wanted")


def whole(value: Any) -> int:
    """A whole number, also as 8.0 or '8'."""
    found = number(value)
    if found != int(found):
        raise ValueError("a whole number is wanted")
    return int(found)


def above_zero(value: Any) -> int | float:
    """A number above zero; zero and -1 are ways to say nothing."""
    found = number(value)
    if found <= 0:
        raise Nothing
    return found


def whole_above_zero(value: Any) -> int:
    """A whole number above zero; zero and -1 are ways to say nothing."""
    return whole(above_zero(value))


def share(value: Any) -> int | float:
    """A share of something, below 1; zero says nothing."""
    found = above_zero(value)
    if found >= 1:
        raise ValueError("only a share below 1 can be carried over")
    return found


def names(value: Any) -> list[str]:
    """A list of names, also written with commas."""
    if isinstance(as_it_is(value), str):
        value = value.strip("[]()").split(",")
    listed = value if isinstance(value, list | tuple) else [value]
    found = [str(each).strip().strip("'\"") for each in listed if each is not None]
    if not any(found):
        raise Nothing
    return [each for each in found if each]


def one_of(choices: Collection[str], meanings: Callable[[str], str] = str) -> Read:
    """A name that is known here, after `meanings`; ValueError tells what is."""

    def how(value: Any) -> str:
        found = meanings(str(as_it_is(value)))
        if found not in choices:
            raise ValueError(f"known here: {', '.join(choices)}")
        return found

    return how


def dtype(value: Any) -> str:
    """The type of weights, without `torch.`."""
    short = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "half": "float16"}
    name = str(as_it_is(value)).removeprefix("torch.")
    return short.get(name, name)


def targets(value: Any) -> Any:
    """Where LoRA's pairs stand: an intent, or names of layers."""
    if str(value).strip() in ("all", "all-linear"):
        return "all-linear"
    return names(value)


def trackers(value: Any) -> list[str]:
    """The trackers that are known here. ValueError names the others."""
    known = get_args(Tracker)
    if value is None or str(value).lower() in ("all", "[]", ""):
        raise Nothing("")
    asked = names(value)
    unknown = [each for each in asked if each not in known]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is no tracker here; known: {', '.join(known)}")
    return asked


_OPTIMIZERS = {
    "adamw_hf": "adamw_torch",
    "adamw": "adamw_torch_fused",
    "adamw_bnb_8bit": "adamw_8bit",
    "adamw_apex_fused": "adamw_torch_fused",
}


def optimizer(value: Any) -> str:
    """Our name where it differs; whether it is known shows when the recipe is built."""
    return _OPTIMIZERS.get(str(as_it_is(value)).lower(), str(value))


def attention(value: Any) -> str:
    """The attention kernel."""
    known = {
        "fa2": "flash_attention_2",
        "flash_attention_2": "flash_attention_2",
        "kernels-community/flash-attn2": "flash_attention_2",
        "sdpa": "sdpa",
        "eager": "eager",
        "disabled": "eager",
    }
    text = str(as_it_is(value)).lower()
    if text in _YES:
        return "flash_attention_2"
    if text in _NO:
        raise Nothing
    if text not in known:
        raise ValueError("known here: eager, sdpa, flash_attention_2")
    return known[text]
