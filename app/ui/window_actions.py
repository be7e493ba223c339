"""Everything that can be done by a key, and the menu that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

from app.ui.dialogs import show_about

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


def add_actions(window: MainWindow) -> None:
    """Gives the window its keys, and its button "More" the menu."""
    menu = QMenu(window)

    def add(text: str, key: str, slot: Callable[[], object]) -> None:
        action = QAction(text, window)
        action.setShortcut(QKeySequence(key))
        action.triggered.connect(slot)
        menu.addAction(action)
        window.addAction(action)

    add(_tr("&New chat"), "Ctrl+N", window.new_chat)
    add(_tr("Choose a &model…"), "Ctrl+M", window.choose_model)
    add(_tr("&Open a model file…"), "Ctrl+O", window.picker.open_file)
    menu.addSeparator()
    add(_tr("&Regenerate"), "Ctrl+R", lambda: window.chats.regenerate())
    add(_tr("&Copy the last reply"), "Ctrl+Shift+C", window.view.copy_last_reply)
    add(_tr("&Stop the reply"), "Esc", window.chats.stop)
    menu.addSeparator()
    add(_tr("&Go to the message field"), "Ctrl+L", window.prompt.setFocus)
    add(_tr("Go to the c&hats"), "Ctrl+K", window.chat_list.list.setFocus)
    add(_tr("Show or hide se&ttings"), "Ctrl+,", window.settings_button.click)
    menu.addSeparator()
    add(_tr("&About Causerie"), "F1", lambda: show_about(window))
    add(_tr("&Quit"), "Ctrl+Q", window.close)
    window.more_button.setMenu(menu)
    window.more_button.setShortcut(QKeySequence("Alt+M"))


def _tr(text: str) -> str:
    return QCoreApplication.translate("WindowActions", text)
