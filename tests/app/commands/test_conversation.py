"""A conversation in the terminal: what is remembered, slash commands, Ctrl-C, the end of the input."""

import io
import os
import sys

import pytest

from app.commands import conversation as module
from app.commands.conversation import Conversation
from engine.errors import ContextOverflowError
from engine.requests import Finished, Message, SamplingSettings, TextPiece, Timings

TIMINGS = Timings(3, 0, 2, 0.1, 0.1, 5)


class FakeModel:
    class description:
        name = "Fake"


class FakeSession:
    model = FakeModel()
    context_size = 100


@pytest.fixture
def asked(monkeypatch):
    """Every conversation that was sent to the engine; the reply is its number."""
    requests = []

    def chat(session, request, should_stop):
        requests.append([(message.role, message.content) for message in request.messages])
        text = f"reply {len(requests)}"
        if request.messages[-1].content == "too long":
            raise ContextOverflowError("The message needs 200 tokens.")
        if request.messages[-1].content == "interrupt me":
            os.kill(os.getpid(), 2)
        if request.messages[-1].content == "interrupt me twice":
            os.kill(os.getpid(), 2)
            os.kill(os.getpid(), 2)
        yield TextPiece(text, 1, 0.0)
        yield Finished("cancelled" if should_stop() else "stop", text, (1,), "", TIMINGS)

    monkeypatch.setattr(module, "chat", chat)
    return requests


def hold(monkeypatch, text: str, system: str | None = None) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return Conversation(FakeSession(), SamplingSettings(), system, None, ()).hold()


def test_turns_are_remembered(asked, monkeypatch, capsys):
    assert hold(monkeypatch, "one\n\n  \ntwo\n", system="be kind") == 0
    assert asked[1] == [
        ("system", "be kind"),
        ("user", "one"),
        ("assistant", "reply 1"),
        ("user", "two"),
    ]
    assert capsys.readouterr().out == "reply 1\nreply 2\n"


def test_new_system_and_again(asked, monkeypatch):
    hold(monkeypatch, "one\n/again\n/system short, please\ntwo\n/new\nthree\n/system\nfour\n/quit\nfive\n")
    assert asked[1] == [("user", "one")]
    assert asked[2] == [
        ("system", "short, please"),
        ("user", "one"),
        ("assistant", "reply 2"),
        ("user", "two"),
    ]
    assert asked[3] == [("system", "short, please"), ("user", "three")]
    assert asked[4][0] == ("user", "three") and len(asked) == 5


def test_a_line_may_go_on(asked, monkeypatch):
    hold(monkeypatch, "one\\\ntwo\\\n\nthree\\")
    assert [request[-1] for request in asked] == [("user", "one\ntwo\n"), ("user", "three")]


def test_commands_that_tell(asked, monkeypatch, capsys):
    hold(monkeypatch, "/help\n/stats\n/again\n/nonsense\n/etc/fstab is a file\n/stats\n")
    out, err = capsys.readouterr()
    assert "/quit" in out and "no command here" in err and "no reply yet" in err
    assert asked == [[("user", "/etc/fstab is a file")]], "a path is no command"
    assert "context 5 of 100 tokens" in out


def test_a_failed_reply_leaves_the_conversation_as_it_was(asked, monkeypatch, capsys):
    hold(monkeypatch, "one\ntoo long\ntwo\n")
    assert [content for _, content in asked[2]] == ["one", "reply 1", "two"]
    assert "error: The message needs 200 tokens." in capsys.readouterr().err


def test_ctrl_c_stops_the_reply_and_keeps_what_came(asked, monkeypatch):
    assert hold(monkeypatch, "interrupt me\ngo on\n") == 0
    assert asked[1] == [("user", "interrupt me"), ("assistant", "reply 1"), ("user", "go on")]


def test_ctrl_c_twice_leaves(asked, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        hold(monkeypatch, "interrupt me twice\nnever\n")
    assert len(asked) == 1


def test_again_after_a_failure_keeps_the_earlier_reply(asked, monkeypatch):
    talk = Conversation(FakeSession(), SamplingSettings(), None, None, ())
    talk.messages = [Message("user", "too long"), Message("assistant", "kept")]
    talk._again("")
    assert [message.content for message in talk.messages] == ["too long", "kept"]
