"""Conversations made ready for a template: plain values, and other shapes where the first is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.errors import TemplateError
from engine.requests import Message
from engine.templates.operations import JSONObject

PlainMessage = dict[str, Any]


def plain_messages(messages: Sequence[Message | Mapping[str, Any]]) -> list[PlainMessage]:
    """Copies that a template cannot tell from those it was written for.

    content: None or missing becomes "", a list of text parts their joined text.  Arguments of tool calls
    become objects.  Raises TemplateError for other content.
    """
    return [_plain_message(message) for message in messages]


def _plain_message(message: Message | Mapping[str, Any]) -> PlainMessage:
    if isinstance(message, Message):
        return {"role": message.role, "content": message.content}
    plain = {str(key): _copy(value) for key, value in message.items()}
    plain["content"] = _text(message.get("content"))
    if plain.get("tool_calls"):
        for call in plain["tool_calls"]:
            function = call.get("function", call)
            function["arguments"] = _arguments(function.get("arguments"))
    return plain


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _copy(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(item) for item in value]
    return value


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(_part_text(part) for part in content)
    raise TemplateError(f"The content of a message is of type {type(content).__name__}, not text.")


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    raise TemplateError(f"A message holds a part of kind {kind!r}; only text can be sent.")


def _arguments(arguments: Any) -> Any:
    """JSON text or an object, as an object; text that is no JSON object stays text."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return arguments
    if arguments is None:
        return JSONObject()
    return JSONObject(arguments) if isinstance(arguments, Mapping) else arguments


def shapes(messages: list[PlainMessage], *, system_is_printed: bool) -> Iterator[list[PlainMessage]]:
    """The same words in the shapes that templates ask for, the most faithful first.

    As they are; neighbours of one role merged; the system text at the head of the first user message.
    """
    candidates = [messages, merge_neighbours(messages)] if system_is_printed else []
    folded = fold_system(messages)
    candidates += [folded, merge_neighbours(folded)]
    seen: list[list[PlainMessage]] = []
    for candidate in candidates:
        if candidate not in seen:
            seen.append(candidate)
            yield candidate


def merge_neighbours(messages: list[PlainMessage]) -> list[PlainMessage]:
    """Messages of one role in a row become one, with an empty line between them; tool calls stay apart."""
    merged: list[PlainMessage] = []
    for message in messages:
        simple = message.keys() <= {"role", "content"}
        last = merged[-1] if merged else None
        if (
            simple
            and last is not None
            and last["role"] == message["role"]
            and last.keys() <= {"role", "content"}
        ):
            merged[-1] = {**last, "content": _paragraphs(last["content"], message["content"])}
        else:
            merged.append(message)
    return merged


def fold_system(messages: list[PlainMessage]) -> list[PlainMessage]:
    """The system texts at the head of the first user message, or as a user message where there is none."""
    system = [message["content"] for message in messages if message.get("role") == "system"]
    rest = [message for message in messages if message.get("role") != "system"]
    if not system:
        return rest
    text = _paragraphs(*system)
    for index, message in enumerate(rest):
        if message.get("role") == "user":
            rest[index] = {**message, "content": _paragraphs(text, message["content"])}
            return rest
    return [{"role": "user", "content": text}, *rest]


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
