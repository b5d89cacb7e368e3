"""How an instruction becomes a prompt. Training and prediction render it by the same functions."""

from collections.abc import Sequence
from typing import Any

from launcher.data.encode import encode, opening
from launcher.errors import BadValue, Problem, UnknownSetting
from launcher.registry import nearest

NAMES = ("chat", "alpaca", "plain")

# The prompts of Stanford Alpaca (github.com/tatsu-lab/stanford_alpaca, Apache-2.0).
_ALPACA_INPUT = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n"
)
_ALPACA = (
    "Below is an instruction that describes a task. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n### Response:\n"
)
_MARK = "\u2063answer\u2063"  # stands for an answer while a chat template is asked what follows one


def choose(template: str, tokenizer: Any) -> str:
    """The template's own name: `auto` is the tokenizer's chat template where it has one, else alpaca."""
    has_chat = bool(getattr(tokenizer, "chat_template", None))
    if template == "auto":
        return "chat" if has_chat else "alpaca"
    if template not in NAMES:
        raise UnknownSetting(
            Problem(
                where="data.template",
                what=f"unknown template '{template}'",
                right=f"one of: auto, {', '.join(NAMES)}",
                type=f"data.template={nearest(template, NAMES) or 'auto'}",
            )
        )
    if template == "chat" and not has_chat:
        raise BadValue(
            Problem(
                where="data.template",
                what="the model's tokenizer has no chat template",
                right="alpaca or plain, or a model that was trained for chat",
                type="data.template=alpaca",
            )
        )
    return template


def render_prompt(instruction: str, input: str, tokenizer: Any, template: str) -> str:
    """The text in front of the answer. `input` may be empty; `template` as for `choose`."""
    return render_prompts([instruction], [input], tokenizer, template)[0]


def render_prompts(
    instructions: Sequence[str], inputs: Sequence[str], tokenizer: Any, template: str
) -> list[str]:
    """`render_prompt` for many rows; the template is resolved once."""
    name = choose(template, tokenizer)
    pairs = list(zip(instructions, inputs, strict=True))
    if name == "chat":
        asked = [[_said("user", _joined(*pair))] for pair in pairs]
        return [_chat(tokenizer, messages, add_generation_prompt=True) for messages in asked]
    if name == "plain":
        return [_joined(*pair) + "\n" for pair in pairs]
    return [_alpaca(*pair) for pair in pairs]


def render_end(tokenizer: Any, template: str) -> str:
    """The text that a chat template puts behind an answer, up to and without white space at its end."""
    if choose(template, tokenizer) != "chat":
        return ""
    talk = [_said("user", "a"), _said("assistant", _MARK)]
    _, mark, behind = _chat(tokenizer, talk, add_generation_prompt=False).rpartition(_MARK)
    return behind.rstrip() if mark else ""


def prompt_ids(instruction: str, input: str, tokenizer: Any, template: str) -> list[int]:
    """The ids that training puts in front of the answer: what prediction has to continue."""
    name = choose(template, tokenizer)
    text = render_prompt(instruction, input, tokenizer, name)
    ids: list[int] = encode([text], tokenizer, special_tokens=False).values.tolist()
    return prompt_opening(tokenizer, name) + ids


def prompt_opening(tokenizer: Any, template: str) -> list[int]:
    """Ids in front of a prompt's own: none for chat templates, which write them themselves."""
    return [] if template == "chat" else opening(tokenizer)


def _chat(tokenizer: Any, messages: list[dict[str, str]], *, add_generation_prompt: bool) -> str:
    text = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=add_generation_prompt
    )
    assert isinstance(text, str)
    return text


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _joined(instruction: str, input: str) -> str:
    return f"{instruction}\n{input}" if input else instruction


def _alpaca(instruction: str, input: str) -> str:
    text = _ALPACA_INPUT if input else _ALPACA
    return text.format(instruction=instruction, input=input)
