"""Which tokens of a conversation are trained: exactly what the assistant writes, and where it stops."""

from pathlib import Path

import pytest

from launcher.data.examples import Examples, Turn
from launcher.data.options import DataOptions
from launcher.data.spans import pieces_of
from launcher.data.templates import CHATML, choose, keep_with_model, prompt_ids
from launcher.data.tokens import tokenise
from launcher.errors import BadValue, DataError
from tests.data.conftest import CHAT, byte_tokenizer

REWRITES = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content|upper if message.role == 'assistant' and not loop.last else message.content }}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ALTERNATES = (
    "{% for message in messages %}{% if loop.index0 % 2 != (message.role == 'assistant')|int %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ message.content }}{% endfor %}"
)


def talk(*said: str, system: str = "") -> tuple[Turn, ...]:
    roles = ("user", "assistant")
    turns = [Turn(role=roles[place % 2], text=text) for place, text in enumerate(said)]
    return (Turn(role="system", text=system), *turns) if system else tuple(turns)


def examples_of(*rows: tuple[Turn, ...], tools: list[str] | None = None) -> Examples:
    lines = list(range(1, len(rows) + 1))
    return Examples(
        layout="messages", texts={}, labels=None, lines=lines, path=Path("a.json"), turns=[*rows], tools=tools
    )


def store_of(examples, tokenizer, **options):
    settings = DataOptions(train_file="x", **options)
    return tokenise(examples, tokenizer, options=settings, task="causal_lm", template=settings.template)


def text_of(store, tokenizer, row=0):
    return tokenizer.decode(store.input_ids[store.offsets[row] : store.offsets[row + 1]])


def learned(store, tokenizer, row=0):
    part = slice(store.offsets[row], store.offsets[row + 1])
    return tokenizer.decode(store.input_ids[part][store.trained[part]])


def test_every_assistant_turn_and_its_end_is_trained_and_nothing_else(chat_tokenizer):
    store = store_of(
        examples_of(talk("hi", "hello", "name?", "i am a cat", system="be good")), chat_tokenizer
    )
    assert text_of(store, chat_tokenizer) == (
        "<|im_start|>system\nbe good<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
        "hello<|im_end|>\n<|im_start|>user\nname?<|im_end|>\n<|im_start|>assistant\ni am a cat<|im_end|>"
    )
    assert learned(store, chat_tokenizer) == "hello<|im_end|>i am a cat<|im_end|>"
    assert store.num_targets.tolist() == [store.trained.sum()]


def test_b038_end_token_is_trained_in_every_turn_although_it_is_the_pad(chat_tokenizer):
    assert chat_tokenizer.pad_token_id == chat_tokenizer.eos_token_id
    store = store_of(examples_of(talk("a", "b", "c", "d")), chat_tokenizer)
    ends = store.input_ids == chat_tokenizer.eos_token_id
    assert ends.sum() == 4 and (ends & store.trained).sum() == 2


def test_what_precedes_an_answer_is_what_prediction_continues(chat_tokenizer, plain_tokenizer):
    for tokenizer in (chat_tokenizer, plain_tokenizer):
        store = store_of(examples_of(talk("the cat", "sat")), tokenizer)
        name = choose("auto", tokenizer, "messages")
        assert store.input_ids[~store.trained].tolist() == prompt_ids("the cat", "", tokenizer, name)


def test_model_without_a_template_gets_chatml_with_its_own_end_token(plain_tokenizer):
    store = store_of(examples_of(talk("a", "b", "c", "d")), plain_tokenizer)
    assert learned(store, plain_tokenizer) == "b<|im_end|></s>d<|im_end|></s>"
    assert store.input_ids[-1] == plain_tokenizer.eos_token_id


def test_named_template_is_saved_with_the_model(tmp_path):
    tokenizer = byte_tokenizer()
    keep_with_model(tokenizer, "chatml")
    tokenizer.save_pretrained(tmp_path)
    again = type(tokenizer).from_pretrained(tmp_path)
    assert again.chat_template == CHATML
    asked = again.apply_chat_template(
        [{"role": "user", "content": "a"}], tokenize=False, add_generation_prompt=True
    )
    assert asked == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"


def test_all_may_be_trained(chat_tokenizer):
    store = store_of(examples_of(talk("a", "b")), chat_tokenizer, train_on="all")
    assert store.trained.all()


def test_turns_that_the_file_leaves_out_are_not_trained(chat_tokenizer):
    turns = (*talk("a", "bad", "c"), Turn(role="assistant", text="good", trained=True))
    turns = (turns[0], Turn(role="assistant", text="bad", trained=False), *turns[2:])
    assert learned(store_of(examples_of(turns), chat_tokenizer), chat_tokenizer) == "good<|im_end|>"


def test_question_behind_the_last_answer_is_left_out(chat_tokenizer):
    store = store_of(examples_of(talk("a", "b", "c")), chat_tokenizer)
    assert text_of(store, chat_tokenizer).endswith("b<|im_end|>")


def test_template_that_rewrites_earlier_turns_is_refused_with_what_differs():
    tokenizer = byte_tokenizer(chat=True)
    tokenizer.chat_template = REWRITES
    assert learned(store_of(examples_of(talk("a", "b")), tokenizer), tokenizer) == "b<|im_end|>"
    with pytest.raises(DataError, match="rewrites earlier turns when others follow") as error:
        store_of(examples_of(talk("a", "b"), talk("a", "b", "c", "d")), tokenizer)
    problem = error.value.problems[0]
    assert problem.where == "a.json:2" and "data.template=chatml" in problem.type


def test_roles_that_a_template_refuses_are_told_with_their_record():
    tokenizer = byte_tokenizer(chat=True)
    tokenizer.chat_template = ALTERNATES
    with pytest.raises(
        DataError, match=r"a.json:1 .*refuses this conversation \(system, user.*must alternate"
    ):
        store_of(examples_of(talk("a", "b", system="s")), tokenizer)


def test_tool_calls_stand_in_the_text_where_the_template_has_no_place(chat_tokenizer):
    call = Turn(role="assistant", text="", calls=({"name": "look", "arguments": {"at": "it"}},))
    turns = (*talk("a"), call, Turn(role="tool", text="seen"), Turn(role="assistant", text="done"))
    store = store_of(examples_of(turns, tools=['[{"name": "look"}]']), chat_tokenizer)
    said = '<tool_call>\n{"name": "look", "arguments": {"at": "it"}}\n</tool_call>'
    assert learned(store, chat_tokenizer) == f"{said}<|im_end|>done<|im_end|>"
    assert any("no place for tools" in notice for notice in store.notices)


def test_template_with_a_place_for_tools_gets_them():
    tokenizer = byte_tokenizer(chat=True)
    tokenizer.chat_template = "{% for tool in tools %}[{{ tool.name }}]{% endfor %}" + CHAT
    pieces = pieces_of(talk("a", "b"), '[{"name": "look"}]', tokenizer, "chat")
    assert pieces[0].text.startswith("[look]<|im_start|>user")
    assert [piece.trained for piece in pieces] == [False, True]


def test_b039_long_conversations_lose_their_oldest_exchange_whole_and_keep_the_system_turn(chat_tokenizer):
    long = talk("cat " * 30, "sat " * 30, "and?", "good", system="be good")
    whole = store_of(examples_of(long), chat_tokenizer, max_length=1000)
    store = store_of(examples_of(long), chat_tokenizer, max_length=len(whole.input_ids) - 1)
    assert text_of(store, chat_tokenizer) == (
        "<|im_start|>system\nbe good<|im_end|>\n<|im_start|>user\nand?<|im_end|>\n<|im_start|>assistant\n"
        "good<|im_end|>"
    )
    assert store.num_truncated == 1 and "1 of 1 rows" in store.notices[0]


def test_b039_last_question_is_cut_from_the_left_and_the_answer_kept(chat_tokenizer):
    store = store_of(examples_of(talk("cat " * 50, "good")), chat_tokenizer, max_length=30)
    assert store.lengths.tolist() == [30]
    assert learned(store, chat_tokenizer) == "good<|im_end|>"


def test_b039_conversations_without_an_answer_that_fits_are_refused_above_the_share(chat_tokenizer):
    rows = [talk("a", "b")] * 9
    with pytest.raises(
        DataError, match="1 of 10 rows have no answer, or an answer that does not fit"
    ) as error:
        store_of(examples_of(*rows, talk("a")), chat_tokenizer)
    assert error.value.problems[0].where == "a.json:10"
    kept = store_of(examples_of(*rows, talk("a")), chat_tokenizer, max_lost_fraction=0.1)
    assert len(kept) == 9 and any("left out" in notice for notice in kept.notices)
    with pytest.raises(DataError, match="1 of 1 rows"):
        store_of(examples_of(talk("a")), chat_tokenizer, max_lost_fraction=1.0)


@pytest.mark.parametrize("most", [24, 40, 60, 90, 200])
def test_b039_no_kept_row_is_too_long_or_without_a_target(chat_tokenizer, most):
    rows = [talk("cat " * n, "sat " * (n // 2), "dog " * n, "mat") for n in range(1, 20)]
    store = store_of(examples_of(*rows), chat_tokenizer, max_length=most)
    assert store.lengths.max() <= most and (store.num_targets > 0).all()
    assert all(learned(store, chat_tokenizer, row).endswith("mat<|im_end|>") for row in range(len(store)))


def test_begin_token_survives_the_cut():
    tokenizer = byte_tokenizer(begin=True)
    tokenizer.chat_template = "{{ bos_token }}" + CHAT
    store = store_of(examples_of(talk("cat " * 50, "good")), tokenizer, max_length=30)
    assert store.input_ids[0] == tokenizer.bos_token_id and not store.trained[0]
    assert learned(store, tokenizer) == "good<|im_end|></s>"


def test_templates_for_one_question_are_refused_for_conversations(chat_tokenizer):
    with pytest.raises(BadValue, match="alpaca is for one question and its answer"):
        store_of(examples_of(talk("a", "b")), chat_tokenizer, template="alpaca")


def prompted(*rows: tuple[str, str]) -> Examples:
    texts = {"prompt": [row[0] for row in rows], "completion": [row[1] for row in rows]}
    lines = list(range(1, len(rows) + 1))
    return Examples(layout="prompt_completion", texts=texts, labels=None, lines=lines, path=Path("a.json"))


def test_prompt_and_completion_are_joined_as_they_are(chat_tokenizer):
    store = store_of(prompted(("the cat", " sat<|endoftext|>"), ("a", " b")), chat_tokenizer)
    assert text_of(store, chat_tokenizer) == "the cat sat<|im_end|>"
    assert learned(store, chat_tokenizer) == " sat<|im_end|>"
    assert "1 completions end in a mark such as <|endoftext|>" in store.notices[0]
    first = store.input_ids[: store.offsets[1]][~store.trained[: store.offsets[1]]]
    assert first.tolist() == prompt_ids("the cat", "", chat_tokenizer, "none")


def test_prompt_and_completion_may_be_put_into_the_chat_template(chat_tokenizer):
    store = store_of(prompted(("hi", "hello")), chat_tokenizer, template="chat")
    assert text_of(store, chat_tokenizer) == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>"
    )


STYLES = {
    "brackets": (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
        "{% else %} {{ m.content }} {{ eos_token }}{% endif %}{% endfor %}",
        " b </s> d </s>",
    ),
    "headers": (
        "{{ bos_token }}{% for m in messages %}<|head|>{{ m.role }}<|/head|>\n\n{{ m.content | trim }}<|eot|>"
        "{% endfor %}{% if add_generation_prompt %}<|head|>assistant<|/head|>\n\n{% endif %}",
        "b<|eot|>d<|eot|></s>",
    ),
    "renamed": (
        "{{ bos_token }}{% for m in messages %}<turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
        "{{ m.content }}</turn>\n{% endfor %}{% if add_generation_prompt %}<turn>model\n{% endif %}",
        "b</turn>d</turn></s>",
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_styles_of_templates_are_all_understood(style):
    tokenizer = byte_tokenizer(begin=True)
    tokenizer.chat_template, expected = STYLES[style]
    store = store_of(examples_of(talk("a", "b", "c", "d")), tokenizer)
    assert learned(store, tokenizer) == expected
    assert store.input_ids[0] == tokenizer.bos_token_id
    assert store.input_ids[-1] == tokenizer.eos_token_id and store.trained[-1]
    asked = [{"role": "user", "content": "a"}]
    prompt = tokenizer.apply_chat_template(
        asked, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    assert store.input_ids[: len(prompt)].tolist() == prompt and not store.trained[: len(prompt)].any()
