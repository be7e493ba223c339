"""A person's day: load, send, stream, stop, regenerate, new chat, switch, rename, delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.chats.store import ChatStore
from app.errors import ChatStoreError
from engine.errors import InvalidNumbersError
from engine.requests import Message
from tests.app.ui.conftest import Bench

OpenBench = Callable[..., Bench]


def wait_for_reply(qtbot: QtBot, bench: Bench) -> None:
    qtbot.waitUntil(lambda: not bench.window.chats.is_replying)


def test_a_message_is_sent_and_the_reply_is_shown_and_kept(
    qtbot: QtBot, bench: Bench, store: ChatStore
) -> None:
    bench.send("Hello <b>you</b>")
    wait_for_reply(qtbot, bench)
    assert "Hello <b>you</b>" in bench.shown()
    assert "Hello there." in bench.shown()
    (chat,) = store.chats()
    question, answer = store.messages(chat.id)
    assert (question.role, question.content, question.state) == ("user", "Hello <b>you</b>", "complete")
    assert (answer.role, answer.content, answer.state) == ("assistant", "Hello there.", "complete")
    assert answer.model == "model"
    assert bench.window.prompt.text() == ""
    assert "tokens/s" in bench.window.status.activity.text()
    assert bench.window.status.context.text() == "Context: 23 of 4,096 tokens"
    assert bench.window.chat_list.list.item(0).text() == "Hello <b>you</b>"


def test_the_model_is_told_the_conversation_and_the_settings(qtbot: QtBot, bench: Bench) -> None:
    bench.window.panel.system_prompt.setPlainText("Be brief.")
    bench.window.settings.temperature = 0.25
    bench.window.settings.max_tokens = 50
    for text in ("one", "two"):
        bench.send(text)
        wait_for_reply(qtbot, bench)
    request = bench.worker.requests[-1]
    assert request.messages == (
        Message("system", "Be brief."),
        Message("user", "one"),
        Message("assistant", "Hello there."),
        Message("user", "two"),
    )
    assert request.sampling.temperature == 0.25
    assert request.max_tokens == 50


def test_stop_keeps_what_came(qtbot: QtBot, open_bench: OpenBench, store: ChatStore) -> None:
    bench = open_bench(pieces=["word "] * 1000, pause=0.005)
    bench.send("go")
    qtbot.waitUntil(lambda: "word word" in bench.shown())
    assert bench.window.prompt.button.text() == "&Stop"
    bench.send("not now")  # nothing is sent while a reply runs
    qtbot.mouseClick(bench.window.prompt.button, Qt.MouseButton.LeftButton)
    wait_for_reply(qtbot, bench)
    messages = store.messages(store.chats()[0].id)
    assert [message.role for message in messages] == ["user", "assistant"]
    assert messages[1].state == "stopped"
    assert messages[1].content.startswith("word word")
    assert "Stopped." in bench.shown()
    assert bench.window.prompt.text() == "not now"


def test_escape_stops(qtbot: QtBot, open_bench: OpenBench) -> None:
    bench = open_bench(pieces=["word "] * 1000, pause=0.005)
    bench.send("go")
    qtbot.waitUntil(lambda: "word" in bench.shown())
    action = next(a for a in bench.window.actions() if a.shortcut().toString() == "Esc")
    action.trigger()
    wait_for_reply(qtbot, bench)
    assert "Stopped." in bench.shown()


def test_regenerate_replaces_the_last_reply(qtbot: QtBot, bench: Bench, store: ChatStore) -> None:
    bench.send("again?")
    wait_for_reply(qtbot, bench)
    bench.worker.pieces = ["Another ", "answer"]
    bench.window.chats.regenerate()
    wait_for_reply(qtbot, bench)
    messages = store.messages(store.chats()[0].id)
    assert [message.content for message in messages] == ["again?", "Another answer"]
    assert "Hello there." not in bench.shown()
    assert bench.shown().count("Regenerate") == 1
    assert bench.worker.requests[-1].messages == (Message("user", "again?"),)


def test_a_new_chat_and_back(qtbot: QtBot, bench: Bench, store: ChatStore) -> None:
    bench.send("first chat")
    wait_for_reply(qtbot, bench)
    bench.window.chat_list.new_button.click()
    assert bench.window.pages.currentWidget() is bench.window.empty_page
    bench.send("second chat")
    wait_for_reply(qtbot, bench)
    assert "first chat" not in bench.shown()
    titles = [bench.window.chat_list.list.item(row).text() for row in range(2)]
    assert titles == ["second chat", "first chat"]
    bench.window.chat_list.list.setCurrentRow(1)
    assert "first chat" in bench.shown()
    assert "second chat" not in bench.shown()


def test_a_reply_goes_on_while_another_chat_is_shown(
    qtbot: QtBot, open_bench: OpenBench, store: ChatStore
) -> None:
    bench = open_bench()
    bench.send("calm")
    wait_for_reply(qtbot, bench)
    calm = bench.window.chats.chat_id
    bench.window.chats.new_chat()
    bench.worker.pieces, bench.worker.pause = ["piece "] * 60, 0.01
    bench.send("busy")
    busy = bench.window.chats.chat_id
    assert calm is not None
    assert busy is not None
    qtbot.waitUntil(lambda: "piece" in bench.shown())
    bench.window.chats.open_chat(calm)
    assert "piece" not in bench.shown()
    qtbot.wait(100)
    assert "piece" not in bench.shown()
    bench.window.chats.open_chat(busy)
    assert bench.window.chats.is_replying
    wait_for_reply(qtbot, bench)
    assert bench.shown().count("piece") == 60
    assert store.messages(busy)[-1].content == "piece " * 60


def test_deleting_the_chat_that_is_being_answered_stops_the_reply(
    qtbot: QtBot, open_bench: OpenBench, store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = open_bench(pieces=["word "] * 1000, pause=0.005)
    monkeypatch.setattr("app.ui.chat_list.confirm_delete", lambda _title, _parent: True)
    bench.send("go")
    qtbot.waitUntil(lambda: "word" in bench.shown())
    bench.window.chat_list.delete_action.trigger()
    wait_for_reply(qtbot, bench)
    assert store.chats() == []
    assert bench.window.chat_list.list.count() == 0
    assert bench.window.pages.currentWidget() is bench.window.empty_page


def test_a_chat_is_kept_where_deleting_is_not_confirmed(
    qtbot: QtBot, bench: Bench, store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.ui.chat_list.confirm_delete", lambda _title, _parent: False)
    bench.send("keep me")
    wait_for_reply(qtbot, bench)
    bench.window.chat_list.delete_action.trigger()
    assert len(store.chats()) == 1


def test_renaming(qtbot: QtBot, bench: Bench, store: ChatStore, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.send("old name")
    wait_for_reply(qtbot, bench)
    monkeypatch.setattr("app.ui.chat_list.QInputDialog.getText", lambda *_: ("<i>new</i> name", True))
    bench.window.chat_list.rename_action.trigger()
    assert [chat.title for chat in store.chats()] == ["<i>new</i> name"]
    assert bench.window.chat_list.list.item(0).text() == "<i>new</i> name"


def test_copying_the_last_reply_gives_its_source(qtbot: QtBot, open_bench: OpenBench) -> None:
    bench = open_bench(pieces=["**bold** ", "`x<T>`"])
    bench.send("go")
    wait_for_reply(qtbot, bench)
    bench.window.view.copy_last_reply()
    assert QGuiApplication.clipboard().text() == "**bold** `x<T>`"


def test_an_error_in_the_middle_keeps_the_text(qtbot: QtBot, open_bench: OpenBench, store: ChatStore) -> None:
    error = InvalidNumbersError("The numbers went wrong.")
    bench = open_bench(failure=error)
    bench.send("go")
    wait_for_reply(qtbot, bench)
    assert bench.errors == [error]
    answer = store.messages(store.chats()[0].id)[-1]
    assert (answer.content, answer.state) == ("Hello there.", "error")
    assert "Ended by an error." in bench.shown()


def test_a_bad_file_is_told_and_the_old_model_stays(qtbot: QtBot, bench: Bench) -> None:
    bench.window.load_model(Path("bad.gguf"))
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert [error.title for error in bench.errors] == ["bad.gguf is no model."]
    assert bench.window.model_button.text() == "model  ▾"
    bench.send("still there?")
    wait_for_reply(qtbot, bench)
    assert "Hello there." in bench.shown()


def test_loading_shows_progress_and_can_be_cancelled(qtbot: QtBot, open_bench: OpenBench) -> None:
    bench = open_bench(model=False, pause=0.1)
    bench.window.load_model(Path("large.gguf"))
    qtbot.waitUntil(lambda: bench.window.work_bar.bar.value() >= 250)
    assert "Loading large.gguf" in bench.window.work_bar.label.text()
    bench.window.work_bar.cancel_button.click()
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert bench.window.work_bar.isHidden()
    assert bench.window.bridge.info is None
    assert bench.errors == []


def test_a_model_that_can_never_fit_is_an_error_and_the_old_one_stays(qtbot: QtBot, bench: Bench) -> None:
    bench.window.load_model(Path("huge.gguf"))
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert [error.title for error in bench.errors] == ["It needs 9 TB."]
    assert bench.window.bridge.info is not None
    assert bench.window.bridge.info.path == Path("model.gguf")


@pytest.mark.parametrize("answer", [False, True])
def test_a_model_that_does_not_fit_beside_the_old_one_may_replace_it(
    qtbot: QtBot, bench: Bench, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    asked = []
    monkeypatch.setattr(
        "app.ui.main_window.confirm_replace", lambda error, _parent: asked.append(error.title) or answer
    )
    bench.window.load_model(Path("large.gguf"))
    qtbot.waitUntil(lambda: bool(asked) and not bench.window.models.is_busy)
    assert asked == ["It does not fit beside the loaded one."]
    assert bench.window.bridge.info is not None
    assert bench.window.bridge.info.path == Path("large.gguf" if answer else "model.gguf")
    assert ("unload" in bench.worker.requests) == answer


@pytest.mark.parametrize("answer", ["", "chatml"])
def test_a_model_without_a_template_asks_for_its_family(
    qtbot: QtBot, bench: Bench, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    asked = []
    monkeypatch.setattr("app.ui.main_window.ask_for_template", lambda name, _: asked.append(name) or answer)
    bench.window.load_model(Path("base.gguf"))
    qtbot.waitUntil(lambda: bool(asked) and not bench.window.models.is_busy)
    info = bench.window.bridge.info
    assert info is not None and info.has_template == bool(answer)
    bench.window.models.reload()
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert asked == ["base.gguf"] * (1 if answer else 2), "a family that was named stays named"


def test_the_last_of_several_files_chosen_is_loaded(qtbot: QtBot, open_bench: OpenBench) -> None:
    bench = open_bench(model=False, pause=0.02)
    for name in ("one.gguf", "two.gguf", "three.gguf"):
        bench.window.load_model(Path(name))
    qtbot.waitUntil(lambda: not bench.window.models.is_busy)
    assert bench.window.bridge.info is not None
    assert bench.window.bridge.info.path == Path("three.gguf")


def test_sending_without_a_model_asks_for_one_and_keeps_the_text(
    qtbot: QtBot, open_bench: OpenBench, store: ChatStore
) -> None:
    bench = open_bench(model=False)
    bench.send("anyone there?")
    assert bench.window.picker.isVisible()
    assert bench.window.prompt.text() == "anyone there?"
    assert store.chats() == []
    bench.window.picker.reject()


def test_a_message_that_cannot_be_kept_stays_in_the_field(
    qtbot: QtBot, bench: Bench, store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_text: str) -> None:
        raise ChatStoreError("The disk is full.")

    monkeypatch.setattr(store, "add_chat", full)
    bench.send("precious")
    assert [error.title for error in bench.errors] == ["The disk is full."]
    assert bench.window.prompt.text() == "precious"
    assert not bench.window.chats.is_replying


def test_closing_in_mid_reply_keeps_it_as_stopped(
    qtbot: QtBot, open_bench: OpenBench, store: ChatStore
) -> None:
    bench = open_bench(pieces=["word "] * 1000, pause=0.005)
    bench.send("go")
    qtbot.waitUntil(lambda: "word" in bench.shown())
    bench.window.close()
    answer = store.messages(store.chats()[0].id)[-1]
    assert answer.state == "stopped"
    assert answer.content.startswith("word")


def test_a_running_reply_is_journaled(qtbot: QtBot, open_bench: OpenBench, store: ChatStore) -> None:
    bench = open_bench(pieces=["word "] * 1000, pause=0.005)
    bench.send("go")
    chat_id = bench.window.chats.chat_id
    assert chat_id is not None
    qtbot.waitUntil(lambda: "word" in store.messages(chat_id)[-1].content, timeout=1500)
    assert store.messages(chat_id)[-1].state == "partial"
