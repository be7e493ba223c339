"""What a model is told of a chat: turns that alternate, without what was never answered."""

from __future__ import annotations

import pytest

from app.chats.chat import StoredMessage
from app.ui.chat_controller import turns_of

ROLES = {"u": "user", "a": "assistant", "s": "system"}


def stored(*messages: str) -> list[StoredMessage]:
    """Each as `role:content` or `role:content:state`."""
    made = []
    for number, text in enumerate(messages):
        role, content, state = f"{text}:complete".split(":")[:3]
        made.append(StoredMessage(number, 1, ROLES[role], content, state, "", 0.0))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        (["u:1", "a:2", "u:3"], ["u:1", "a:2", "u:3"]),
        (["u:1", "a::stopped", "u:2"], ["u:1\n\n2"]),
        (["u:1", "a:so far:error", "u:2"], ["u:1", "a:so far", "u:2"]),
        # a question that could not be answered does not stand in the way of the next
        (["u:far too long", "a::error", "u:short"], ["u:short"]),
        (["u:1", "a:2", "u:long", "a::error", "u:long too", "a::error", "u:3"], ["u:1", "a:2", "u:3"]),
        (["u:1", "a::stopped", "u:long", "a::error", "u:2"], ["u:2"]),
        (["u:1", "a:2", "a::error", "u:3"], ["u:1", "a:2", "u:3"]),
        ([], []),
    ],
)
def test_turns(messages: list[str], turns: list[str]) -> None:
    for system in ("", "Be kind."):
        expected = [*(["s:Be kind."] if system else []), *turns]
        told = [f"{turn.role[0]}:{turn.content}" for turn in turns_of(stored(*messages), system)]
        assert told == expected
