"""Messages of files as turns."""

from pathlib import Path

import pytest

from launcher.data.examples import Turn
from launcher.data.options import DataOptions
from launcher.data.recognise import recognise
from launcher.data.table import Table
from launcher.data.turns import turns_of
from launcher.errors import DataError


def read(rows, **columns):
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    table = Table(columns=names, rows=rows, lines=list(range(1, len(rows) + 1)), path=Path("a.json"))
    found = recognise(table, DataOptions(train_file="x", columns=columns), "causal_lm")
    return found.layout.name, *turns_of(table, found, lambda text: text.replace("{{name}}", "Ada"))


def test_messages_and_sharegpt_are_told_apart_by_what_they_hold():
    ours = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "I am {{name}}"}]
    theirs = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "I am {{name}}"}]
    expected = [(Turn(role="user", text="a"), Turn(role="assistant", text="I am Ada"))]
    for column in ("messages", "conversations"):
        assert read([{column: ours}])[:2] == ("messages", expected)
        assert read([{column: theirs}])[:2] == ("sharegpt", expected)


def test_parts_of_a_content_are_joined_and_reasoning_is_kept_apart():
    parts = [
        {"type": "reasoning", "value": "hm"},
        {"type": "text", "text": "a"},
        {"type": "text", "value": "b"},
    ]
    _, rows, _ = read(
        [{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": parts}]}]
    )
    assert rows[0][1] == Turn(role="assistant", text="ab", reasoning="hm")


@pytest.mark.parametrize(
    "message",
    [
        {"from": "function_call", "value": '{"name": "f", "arguments": {"x": 1}}'},
        {"from": "gpt", "value": [{"type": "tool_call", "value": '{"name": "f", "arguments": {"x": 1}}'}]},
        {
            "from": "gpt",
            "value": None,
            "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}],
        },
    ],
)
def test_tool_calls_are_the_same_in_every_dialect(message):
    _, rows, _ = read([{"conversations": [{"from": "human", "value": "q"}, message]}])
    assert rows[0][1] == Turn(role="assistant", text="", calls=({"name": "f", "arguments": {"x": 1}},))


@pytest.mark.parametrize(("key", "value", "trained"), [("loss_weight", 0.0, False), ("train", True, True)])
def test_what_a_file_says_of_training_a_turn_is_kept(key, value, trained):
    message = {"role": "assistant", "content": "a", key: value}
    _, rows, _ = read([{"messages": [{"role": "user", "content": "q"}, message]}])
    assert rows[0][1].trained is trained and rows[0][0].trained is None


def test_chosen_answer_ends_the_conversation_where_the_recipe_names_it():
    row = {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "good"},
        "rejected": {"from": "gpt", "value": "bad"},
    }
    _, rows, told = read([row])
    assert [turn.text for turn in rows[0]] == ["q"]
    assert told == ("a.json: 1 conversations have no assistant's turn",)
    assert [turn.text for turn in read([row], answer="chosen")[1][0]] == ["q", "good"]


GOOD = {"role": "user", "content": "q"}


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        (
            [GOOD, {"role": "asistant", "content": "a"}],
            r"a.json:2  messages\[1\].role .*is spoken by asistant",
        ),
        ([GOOD, {"role": "assistant", "content": 7}], r"messages\[1\].content holds 7"),
        ([GOOD, "text"], r"messages\[1\] is no message: text"),
        ("text", r"messages is no list of messages: text"),
        ([{"role": "user", "content": [{"type": "image"}]}], r"holds a part of type image without text"),
    ],
)
def test_message_that_cannot_be_read_is_told_with_record_place_and_field(messages, what):
    with pytest.raises(DataError, match=what) as error:
        read([{"messages": [GOOD]}, {"messages": messages}])
    assert error.value.problems[0].where.startswith("a.json:2")


def test_wrong_role_names_the_nearest():
    with pytest.raises(DataError, match=r"nearest: assistant"):
        read([{"messages": [GOOD, {"role": "asistant", "content": "a"}]}])
