"""Where the chat view stands: at the end while text comes, and still under a reader who scrolled away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chats.chat import Role, State, StoredMessage
from app.ui.chat_view import ChatView
from app.ui.theme import LIGHT


def message(number: int, role: Role, content: str, state: State = "complete") -> StoredMessage:
    return StoredMessage(number, 1, role, content, state, "model" if role == "assistant" else "", 0.0)


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[ChatView]:
    made = ChatView(LIGHT)
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    yield made


def stream_lines(view: ChatView, count: int) -> Iterator[int]:
    for number in range(count):
        view.append_to_reply(f"line {number}\n\n")
        view._flush()
        QApplication.processEvents()
        yield number


def test_a_chat_opened_before_the_window_is_there_shows_its_end(qtbot: QtBot) -> None:
    """As after a crash: Qt would go to the text cursor, which is at the beginning."""
    made = ChatView(LIGHT)
    qtbot.addWidget(made)
    made.show_messages([message(1, "user", "question"), message(2, "assistant", "line\n\n" * 300)])
    made.resize(700, 500)
    made.show()
    QApplication.processEvents()
    bar = made.verticalScrollBar()
    assert bar.maximum() > 1000
    assert bar.value() == bar.maximum()


def test_nothing_moves_under_a_reader_who_scrolled_up(view: ChatView, qtbot: QtBot) -> None:
    bar = view.verticalScrollBar()
    view.begin_reply(message(1, "assistant", "", "partial"))
    place = -1
    for number in stream_lines(view, 200):
        if number < 50:
            assert bar.value() == bar.maximum()
        elif number == 50:
            bar.setValue(bar.value() - 300)
            place = bar.value()
        else:
            assert abs(bar.value() - place) <= 2
    view.end_reply("complete")
    QApplication.processEvents()
    assert abs(bar.value() - place) <= 2


def test_it_follows_again_once_the_reader_is_back_at_the_end(view: ChatView) -> None:
    bar = view.verticalScrollBar()
    view.begin_reply(message(1, "assistant", "", "partial"))
    for _ in stream_lines(view, 40):
        pass
    bar.setValue(bar.value() - 300)
    for _ in stream_lines(view, 5):
        pass
    assert bar.value() < bar.maximum()
    bar.setValue(bar.maximum())
    for _ in stream_lines(view, 5):
        assert bar.value() == bar.maximum()
    view.end_reply("complete")


def test_a_resize_keeps_the_line_at_the_top(view: ChatView) -> None:
    view.add_message(
        message(1, "assistant", "\n\n".join(f"paragraph {n} " + "word " * 40 for n in range(80)))
    )
    QApplication.processEvents()
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    top = view.cursorForPosition(QPoint(5, 5)).block().text()
    view.resize(500, 400)
    QApplication.processEvents()
    assert view.cursorForPosition(QPoint(5, 5)).block().text() == top
