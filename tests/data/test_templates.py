"""Prompts."""

import pytest

from launcher.data.templates import choose, prompt_ids, render_end, render_prompt
from launcher.errors import BadValue, UnknownSetting


def test_auto_is_the_chat_template_where_there_is_one_and_alpaca_elsewhere(chat_tokenizer, plain_tokenizer):
    assert choose("auto", chat_tokenizer) == "chat"
    assert choose("auto", plain_tokenizer) == "alpaca"


def test_unknown_template_names_the_nearest(plain_tokenizer):
    with pytest.raises(UnknownSetting, match="data.template=alpaca"):
        choose("alpacca", plain_tokenizer)


def test_chat_without_a_chat_template_is_refused(plain_tokenizer):
    with pytest.raises(BadValue, match="no chat template"):
        choose("chat", plain_tokenizer)


def test_chat_prompt_is_the_tokenizers_own_with_the_answers_head(chat_tokenizer):
    expected = "<|im_start|>user\nSum up.\na, b<|im_end|>\n<|im_start|>assistant\n"
    assert render_prompt("Sum up.", "a, b", chat_tokenizer, "auto") == expected


def test_chat_end_is_what_the_template_puts_behind_an_answer(chat_tokenizer, plain_tokenizer):
    assert render_end(chat_tokenizer, "chat") == "<|im_end|>"
    assert render_end(plain_tokenizer, "alpaca") == ""


@pytest.mark.parametrize(("given", "heading"), [("", False), ("some input", True)])
def test_alpaca_prompt_has_an_input_section_only_for_an_input(plain_tokenizer, given, heading):
    prompt = render_prompt("Say {this}.", given, plain_tokenizer, "alpaca")
    assert ("### Input:" in prompt) is heading
    assert "### Instruction:\nSay {this}.\n" in prompt
    assert prompt.endswith("### Response:\n")


def test_plain_prompt_is_the_text_alone(plain_tokenizer):
    assert render_prompt("a", "b", plain_tokenizer, "plain") == "a\nb\n"


@pytest.mark.parametrize(
    ("name", "template"),
    [("begin_tokenizer", "alpaca"), ("chat_tokenizer", "chat"), ("begin_tokenizer", "plain")],
)
def test_prompt_ids_begin_with_what_the_tokenizer_puts_in_front(name, template, request):
    tokenizer = request.getfixturevalue(name)
    ids = prompt_ids("the cat", "", tokenizer, template)
    text = render_prompt("the cat", "", tokenizer, template)
    assert ids == tokenizer(text, add_special_tokens=template != "chat")["input_ids"]
