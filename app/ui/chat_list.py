"""The list of chats at the left: open, begin, rename, delete."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QInputDialog,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.chats.chat import Chat
from app.ui.dialogs import confirm_delete

CHAT_ID = int(Qt.ItemDataRole.UserRole)


class ChatList(QWidget):
    """Tells what the person wants done; the controller does it and sets the list anew."""

    opened = Signal(int)
    new_wanted = Signal()
    renamed = Signal(int, str)
    deleted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.new_button = QPushButton(self.tr("&New chat"), self)
        self.new_button.setAccessibleName(self.tr("New chat"))
        self.new_button.setToolTip("Ctrl+N")
        self.list = QListWidget(self)
        self.list.setObjectName("chatList")
        self.list.setAccessibleName(self.tr("Chats"))
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setUniformItemSizes(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 14, 12, 12)
        layout.setSpacing(12)
        layout.addWidget(self.new_button)
        layout.addWidget(self.list, 1)
        self.setFixedWidth(224)

        self.rename_action = self._action(self.tr("&Rename…"), "F2", self._rename)
        self.delete_action = self._action(self.tr("&Delete…"), "Del", self._delete)
        self.list.addActions([self.rename_action, self.delete_action])
        self.new_button.clicked.connect(self.new_wanted)
        self.list.currentItemChanged.connect(self._on_current)
        self.list.customContextMenuRequested.connect(self._show_menu)

    def set_chats(self, chats: list[Chat], current: int | None) -> None:
        """Shows these chats and marks the current one, without opening it."""
        self.list.blockSignals(True)
        self.list.clear()
        for chat in chats:
            item = QListWidgetItem(chat.title, self.list)
            item.setData(CHAT_ID, chat.id)
            item.setSizeHint(QSize(0, 38))
            if chat.id == current:
                self.list.setCurrentItem(item)
        if current is None:
            self.list.setCurrentRow(-1)
        self.list.blockSignals(False)

    def _action(self, text: str, key: str, slot: object) -> QAction:
        action = QAction(text, self)
        action.setShortcut(QKeySequence(key))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(slot)
        return action

    def _on_current(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.opened.emit(item.data(CHAT_ID))

    def _show_menu(self, place: QPoint) -> None:
        if self.list.itemAt(place) is not None:
            menu = QMenu(self)
            menu.addActions([self.rename_action, self.delete_action])
            menu.exec(self.list.mapToGlobal(place))

    def _rename(self) -> None:
        item = self.list.currentItem()
        if item is None:
            return
        title, accepted = QInputDialog.getText(
            self, self.tr("Rename chat"), self.tr("Title:"), QLineEdit.EchoMode.Normal, item.text()
        )
        if accepted and title.strip():
            self.renamed.emit(item.data(CHAT_ID), title)

    def _delete(self) -> None:
        item = self.list.currentItem()
        if item is not None and confirm_delete(item.text(), self):
            self.deleted.emit(item.data(CHAT_ID))
