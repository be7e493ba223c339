"""Questions and messages: foreign text as plain text, the safe answer by default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.ui import dialogs
from engine.errors import ModelFileError, OutOfMemoryError
from engine.templates.families import FAMILIES

LONG = "https://a.example/<b>x</b>?q=" + "0123456789" * 200


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    return widget


def answer_with(act: Callable[[QDialog], None]) -> list[str]:
    """Acts on the dialog that opens next; the texts of its labels."""
    texts: list[str] = []

    def look() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, QDialog)
        labels = [label for label in dialog.findChildren(QLabel) if label.text()]
        assert all(label.textFormat() == Qt.TextFormat.PlainText for label in labels)
        texts.extend(label.text() for label in labels)
        act(dialog)

    QTimer.singleShot(50, look)
    return texts


def press(text: str) -> Callable[[QDialog], None]:
    def act(dialog: QDialog) -> None:
        button = next(b for b in dialog.findChildren(QWidget) if getattr(b, "text", str)() == text)
        button.click()  # type: ignore[attr-defined]

    return act


def press_enter(qtbot: QtBot) -> Callable[[QDialog], None]:
    return lambda dialog: qtbot.keyClick(dialog, Qt.Key.Key_Return)


def test_a_link_is_shown_in_full(parent: QWidget) -> None:
    shown: list[str] = []

    def look(dialog: QDialog) -> None:
        assert isinstance(dialog, dialogs.LinkDialog)
        shown.append(dialog.address.toPlainText())
        dialog.open_button.click()

    texts = answer_with(look)
    assert dialogs.ask_about_link(LONG, parent)
    assert shown == [LONG]
    assert "a.example" in texts[0]


def test_enter_does_not_open_a_link(parent: QWidget, qtbot: QtBot) -> None:
    answer_with(press_enter(qtbot))
    assert not dialogs.ask_about_link(LONG, parent)


def test_deleting_asks_and_enter_keeps(parent: QWidget, qtbot: QtBot) -> None:
    texts = answer_with(press_enter(qtbot))
    assert not dialogs.confirm_delete("<i>chat</i>", parent)
    assert any("<i>chat</i>" in text for text in texts)
    answer_with(press("&Delete"))
    assert dialogs.confirm_delete("chat", parent)


def test_replacing_the_model_asks_and_enter_keeps(parent: QWidget, qtbot: QtBot) -> None:
    error = OutOfMemoryError("It needs 8 GB, 3 GB are free.")
    texts = answer_with(press_enter(qtbot))
    assert not dialogs.confirm_replace(error, parent)
    assert "It needs 8 GB, 3 GB are free." in texts
    answer_with(press("Close it and &load"))
    assert dialogs.confirm_replace(error, parent)


def test_the_family_of_a_model_is_asked_for(parent: QWidget, qtbot: QtBot) -> None:
    texts = answer_with(press("OK"))
    chosen = dialogs.ask_for_template("<i>base</i>.gguf", parent)
    assert chosen in {family.name for family in FAMILIES}
    assert any("<i>base</i>.gguf has no chat template" in text for text in texts)
    answer_with(press("Cancel"))
    assert dialogs.ask_for_template("base.gguf", parent) == ""


def test_an_error_has_its_title_and_its_next_step(parent: QWidget) -> None:
    dialogs.show_error(ModelFileError("The file <b>x</b> is cut short."), parent)
    (box,) = parent.findChildren(QMessageBox)
    assert box.text() == "The file <b>x</b> is cut short."
    assert box.informativeText() == "Download the model again, or choose another file."
    assert box.textFormat() == Qt.TextFormat.PlainText
    box.close()
