"""Conversations as turns: role and content, or from and value, checked message by message."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from launcher.data.examples import Speaks, Turn
from launcher.data.findings import Findings, excerpt
from launcher.data.recognise import Recognised
from launcher.data.spool import SpoolWriter, viewed
from launcher.data.table import Table
from launcher.errors import Problem
from launcher.registry import nearest

ROLES: Mapping[str, Speaks] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human", "prompter"), "user"),
    **dict.fromkeys(("assistant", "gpt", "bot", "chatgpt", "model", "function_call"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function", "function_response", "ipython"), "tool"),
}
_THOUGHTS = ("reasoning", "thinking", "thought")


class Malformed(ValueError):
    """A message that cannot be read: what it is, and what would be right."""

    def __init__(self, what: str, right: str, field: str = "") -> None:
        super().__init__(what)
        self.right, self.field = right, field


def turns_of(
    table: Table, recognised: Recognised, fill: Callable[[str], str]
) -> tuple[Sequence[tuple[Turn, ...]], tuple[str, ...]]:
    """The conversation of every row. Raises DataError naming record, message and field."""
    findings, kinds = Findings(table.path), Counter[str]()
    column, answer = recognised.columns["turns"], recognised.columns.get("answer")
    writer = SpoolWriter[tuple[Any, ...]]()
    for number, row in enumerate(table.rows):
        messages = row.get(column)
        if answer is not None and isinstance(messages, list):
            messages = [*messages, row.get(answer)]
        turns = _conversation(table, number, column, messages, fill, findings)
        kinds.update(_odd_order(turns))
        writer.add(tuple(map(_plain, turns)), sum(len(turn.text) + len(turn.reasoning) for turn in turns))
    findings.raise_any()
    said = tuple(f"{table.path.name}: {count:,} conversations {kind}" for kind, count in kinds.items())
    return viewed(writer.done(), _turns), said


def _plain(turn: Turn) -> tuple[Any, ...]:
    return turn.role, turn.text, turn.trained, turn.calls, turn.reasoning


def _turns(plain: tuple[Any, ...]) -> tuple[Turn, ...]:
    return tuple(
        Turn(role=role, text=text, trained=trained, calls=calls, reasoning=reasoning)
        for role, text, trained, calls, reasoning in plain
    )


def _conversation(
    table: Table, row: int, column: str, messages: Any, fill: Callable[[str], str], findings: Findings
) -> tuple[Turn, ...]:
    if not isinstance(messages, list):
        findings.add(_problem(table, row, column, "", f"is no list of messages: {excerpt(messages)}", _RIGHT))
        return ()
    turns = []
    for place, message in enumerate(messages):
        try:
            turns.append(turn_of(message, fill))
        except Malformed as error:
            field = f"[{place}]" + (f".{error.field}" if error.field else "")
            findings.add(_problem(table, row, column, field, str(error), error.right))
    return tuple(turns)


_RIGHT = '[{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]'


def turn_of(message: Any, fill: Callable[[str], str]) -> Turn:
    """One message as a turn. Raises Malformed."""
    if not isinstance(message, dict):
        raise Malformed(f"is no message: {excerpt(message)}", _RIGHT)
    name = message.get("role", message.get("from"))
    role = ROLES.get(name.lower()) if isinstance(name, str) else None
    if role is None:
        close = nearest(str(name), ROLES)
        right = f"one of: {', '.join(ROLES)}" + (f" (nearest: {close})" if close else "")
        raise Malformed(f"is spoken by {excerpt(name)}", right, "role" if "role" in message else "from")
    content = message.get("content", message.get("value"))
    text, reasoning, calls = _content(content, is_call=name == "function_call")
    calls = (*calls, *_tool_calls(message.get("tool_calls")))
    thought = message.get("reasoning_content")
    return Turn(
        role=role,
        text=fill(text),
        trained=_trained(message),
        calls=calls,
        reasoning=fill(thought if isinstance(thought, str) else reasoning),
    )


def _trained(message: Mapping[str, Any]) -> bool | None:
    """What other tools' files say of a message: a loss weight, `train`, or `weight`."""
    for key in ("loss_weight", "weight", "train"):
        value = message.get(key)
        if isinstance(value, bool | int | float):
            return bool(value)
    return None


def _content(content: Any, *, is_call: bool) -> tuple[str, str, tuple[dict[str, object], ...]]:
    """(text, reasoning, calls) of a message's content, which is a text or a list of parts."""
    if content is None:
        return "", "", ()
    if isinstance(content, str):
        calls = _called(content) if is_call else ()
        return ("" if calls else content), "", calls
    if not isinstance(content, list):
        raise Malformed(f"holds {excerpt(content)}", "text, or a list of parts with type and text", "content")
    texts, thoughts = list[str](), list[str]()
    found_calls: list[dict[str, object]] = []
    for part in content:
        kind, text = _part(part)
        if kind == "tool_call" and (found := _called(text)):
            found_calls += found
        else:
            (thoughts if kind in _THOUGHTS else texts).append(text)
    return "".join(texts), "".join(thoughts), tuple(found_calls)


def _part(part: Any) -> tuple[str, str]:
    if not isinstance(part, dict):
        raise Malformed(f"holds the part {excerpt(part)}", '{"type": "text", "text": "..."}', "content")
    kind = part.get("type", "text")
    text = part.get("text", part.get("value", part.get(kind) if isinstance(kind, str) else None))
    if not isinstance(text, str):
        raise Malformed(f"holds a part of type {excerpt(kind)} without text", "parts of type text", "content")
    return str(kind), text


def _called(text: str) -> tuple[dict[str, object], ...]:
    """The tool calls that a text holds as JSON; none where it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    listed = value if isinstance(value, list) else [value]
    return (
        tuple(listed) if listed and all(isinstance(each, dict) and "name" in each for each in listed) else ()
    )


def _tool_calls(value: Any) -> tuple[dict[str, object], ...]:
    """OpenAI's form: [{"type": "function", "function": {"name", "arguments"}}]."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Malformed(
            f"holds {excerpt(value)}", '[{"function": {"name": ..., "arguments": ...}}]', "tool_calls"
        )
    return tuple(each.get("function", each) for each in value if isinstance(each.get("function", each), dict))


def _odd_order(turns: tuple[Turn, ...]) -> list[str]:
    """What training cannot use: a conversation that ends unanswered or has no answer at all."""
    if not any(turn.role == "assistant" for turn in turns):
        return ["have no assistant's turn"]
    return ["end with a turn that nobody answers"] if turns[-1].role != "assistant" else []


def _problem(table: Table, row: int, column: str, field: str, what: str, right: str) -> Problem:
    return Problem(
        where=f"{table.where(row)}  {column}{field}",
        what=f"record {table.record(row):,}, message {column}{field} {what}",
        right=right,
        type="mend or remove that record, or data.columns.turns=COLUMN",
    )
