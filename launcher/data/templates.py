"""How rows become prompts and conversations. Training and prediction render them by the same functions."""

import json
from collections.abc import Sequence
from typing import Any

from launcher.data.encode import encode, opening
from launcher.data.examples import Turn
from launcher.errors import BadValue, Problem, UnknownSetting
from launcher.registry import nearest

NAMES = ("chat", "chatml", "alpaca", "plain", "none")
FOR_TURNS = ("chat", "chatml")

# ChatML for models without a template of their own. An answer also ends with the model's end token.
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' }}"
    "{% if message['role'] == 'assistant' and eos_token and eos_token != '<|im_end|>' %}"
    "{{ eos_token }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

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


def choose(template: str, tokenizer: Any, layout: str = "instruction") -> str:
    """The template's own name.

    `auto` is the tokenizer's chat template where it has one, else alpaca for instructions and chatml for
    conversations; a prompt and its completion are joined as they are (none).
    Raises UnknownSetting, BadValue for a template that the model or the layout cannot have.
    """
    has_chat = bool(getattr(tokenizer, "chat_template", None))
    is_talk = layout in ("messages", "sharegpt")
    if template == "auto":
        if layout == "prompt_completion":
            return "none"
        return "chat" if has_chat else ("chatml" if is_talk else "alpaca")
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
                type=f"data.template={'chatml' if is_talk else 'alpaca'}",
            )
        )
    if is_talk and template not in FOR_TURNS:
        raise BadValue(
            Problem(
                where="data.template",
                what=f"{template} is for one question and its answer, the rows are conversations",
                right="chat (the model's own) or chatml",
                type=f"data.template={'chat' if has_chat else 'chatml'}",
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
    if name in FOR_TURNS:
        asked = [[_said("user", _joined(*pair))] for pair in pairs]
        return [_chat(tokenizer, messages, name, add_generation_prompt=True) for messages in asked]
    if name == "none":
        return [_joined(*pair) for pair in pairs]
    if name == "plain":
        return [_joined(*pair) + "\n" for pair in pairs]
    return [_alpaca(*pair) for pair in pairs]


def render_end(tokenizer: Any, template: str) -> str:
    """The text that a chat template puts behind an answer, up to and without white space at its end."""
    name = choose(template, tokenizer)
    if name not in FOR_TURNS:
        return ""
    talk = [_said("user", "a"), _said("assistant", _MARK)]
    _, mark, behind = _chat(tokenizer, talk, name, add_generation_prompt=False).rpartition(_MARK)
    return behind.rstrip() if mark else ""


def prompt_ids(instruction: str, input: str, tokenizer: Any, template: str) -> list[int]:
    """The ids that training puts in front of the answer: what prediction has to continue."""
    name = choose(template, tokenizer)
    text = render_prompt(instruction, input, tokenizer, name)
    ids: list[int] = encode([text], tokenizer, special_tokens=False).values.tolist()
    return prompt_opening(tokenizer, name) + ids


def prompt_opening(tokenizer: Any, template: str) -> list[int]:
    """Ids in front of a prompt's own: none for chat templates, which write them themselves."""
    return [] if template in FOR_TURNS else opening(tokenizer)


def render_talk(
    turns: Sequence[Turn], tools: str, tokenizer: Any, name: str, *, add_generation_prompt: bool = False
) -> str:
    """A conversation as the template writes it. `tools`: JSON text, "" for none. Raises what Jinja raises."""
    written = template_text(tokenizer, name)
    messages = [_message(turn, "tool_calls" in written) for turn in turns]
    known = json.loads(tools) if tools and "tools" in written else None
    return _chat(tokenizer, messages, name, add_generation_prompt=add_generation_prompt, tools=known)


def template_text(tokenizer: Any, name: str) -> str:
    """The template's source, in which one can see what it has a place for."""
    template = CHATML if name == "chatml" else getattr(tokenizer, "chat_template", None)
    return template if isinstance(template, str) else json.dumps(template)


def keep_with_model(tokenizer: Any, name: str) -> None:
    """Let a named chat template be saved with the tokenizer, so that other programs apply it too."""
    if name == "chatml":
        tokenizer.chat_template = CHATML


def _message(turn: Turn, has_calls: bool) -> dict[str, Any]:
    """A turn as templates take it. Calls that the template has no place for stand in the text as JSON."""
    message: dict[str, Any] = {"role": turn.role, "content": turn.text}
    if turn.calls and has_calls:
        message["tool_calls"] = [{"type": "function", "function": call} for call in turn.calls]
    elif turn.calls:
        called = (f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>" for call in turn.calls)
        message["content"] = "\n".join(filter(None, [turn.text, *called]))
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    return message


def _chat(
    tokenizer: Any,
    messages: list[dict[str, Any]],
    name: str,
    *,
    add_generation_prompt: bool,
    tools: Any = None,
) -> str:
    text = tokenizer.apply_chat_template(
        messages,
        tools=tools,
        tokenize=False,
        add_generation_prompt=add_generation_prompt,
        chat_template=CHATML if name == "chatml" else None,
    )
    assert isinstance(text, str)
    return text


def _said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _joined(instruction: str, input: str) -> str:
    return f"{instruction}\n{input}" if input else instruction


def _alpaca(instruction: str, input: str) -> str:
    text = _ALPACA_INPUT if input else _ALPACA
    return text.format(instruction=instruction, input=input)
