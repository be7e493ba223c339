"""Typing: Enter sends, but never the Enter that an input method wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.ui.prompt_box import MAX_LINES, PromptBox


@pytest.fixture
def box(qtbot: QtBot) -> Iterator[PromptBox]:
    made = PromptBox()
    qtbot.addWidget(made)
    made.resize(500, 60)
    made.show()
    yield made


@pytest.fixture
def sent(box: PromptBox) -> list[str]:
    texts: list[str] = []
    box.sent.connect(texts.append)
    return texts


def compose(box: PromptBox, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    if commit:
        event.setCommitString(commit)
    QApplication.sendEvent(box.edit, event)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_sends(qtbot: QtBot, box: PromptBox, sent: list[str], key: Qt.Key) -> None:
    qtbot.keyClicks(box.edit, "hello")
    qtbot.keyClick(box.edit, key)
    assert sent == ["hello"]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_shift_enter_breaks_the_line(qtbot: QtBot, box: PromptBox, sent: list[str], key: Qt.Key) -> None:
    qtbot.keyClicks(box.edit, "one")
    qtbot.keyClick(box.edit, key, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(box.edit, "two")
    assert sent == []
    assert box.text() == "one\ntwo"


@pytest.mark.parametrize(("preedit", "commit"), [("にほん", "日本"), ("ㅎ", "한")])
def test_the_enter_that_confirms_a_candidate_does_not_send(
    qtbot: QtBot, box: PromptBox, sent: list[str], preedit: str, commit: str
) -> None:
    compose(box, preedit)
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    assert sent == []
    compose(box, "", commit)
    assert box.text() == commit
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    assert sent == [commit]


def test_nothing_but_spaces_is_not_sent(qtbot: QtBot, box: PromptBox, sent: list[str]) -> None:
    qtbot.keyClicks(box.edit, "  ")
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    assert sent == []
    assert not box.button.isEnabled()


def test_while_a_reply_runs_the_button_stops_and_enter_does_not_send(
    qtbot: QtBot, box: PromptBox, sent: list[str]
) -> None:
    box.set_replying(True)
    qtbot.keyClicks(box.edit, "next")
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    with qtbot.waitSignal(box.stopped):
        qtbot.mouseClick(box.button, Qt.MouseButton.LeftButton)
    assert sent == []
    box.set_replying(False)
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    assert sent == ["next"]


def test_it_grows_with_its_text_up_to_a_limit(box: PromptBox) -> None:
    heights = []
    for lines in (1, 3, MAX_LINES, MAX_LINES + 10):
        box.set_text("\n".join(["line"] * lines))
        QApplication.processEvents()
        heights.append(box.edit.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]


def test_pasted_rich_text_comes_in_as_plain_text(box: PromptBox) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b><img src='file:///x'>")
    data.setText("bold")
    box.edit.insertFromMimeData(data)
    assert box.text() == "bold"


def test_a_dropped_file_is_left_to_the_window(box: PromptBox) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile("/models/x.gguf")])
    assert not box.edit.canInsertFromMimeData(data)


def test_tab_leaves_the_field(qtbot: QtBot, box: PromptBox) -> None:
    box.set_text("x")
    box.edit.setFocus()
    qtbot.keyClick(box.edit, Qt.Key.Key_Tab)
    assert box.text() == "x"
