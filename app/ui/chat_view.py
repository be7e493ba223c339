"""The whole chat as one text: scrolling, links, copying, and a repaint at most 30 times a second.

Nothing shown can reach the disk or the network: the document is built from text alone, whatever it might
still ask for is answered with an empty picture, and a link is shown and asked about before it is opened.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QRectF, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QDesktopServices,
    QGuiApplication,
    QImage,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QTextFrame,
)
from PySide6.QtWidgets import QMenu, QTextBrowser, QWidget

from app.chats.chat import State, StoredMessage
from app.system_programs import system_libraries
from app.text.markdown import is_allowed_link
from app.ui.chat_document import ChatDocument
from app.ui.dialogs import ask_about_link
from app.ui.document_writer import FRAME_KIND, LINK, link_target
from app.ui.theme import Theme

FLUSH_MS = 33
MAX_TEXT_WIDTH = 780
SHOWN_AT_FIRST = 40
"""Messages of a long chat that are laid out when it is opened; the rest on request."""


class ChatView(QTextBrowser):
    """Shows messages; `regenerate` and `copied` tell what the person did; `flushed`: text was shown."""

    regenerate = Signal(int)
    copied = Signal()
    flushed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("chatView")
        self.setAccessibleName(self.tr("Conversation"))
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)
        self.setUndoRedoEnabled(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setUndoRedoEnabled(False)
        self.document().setDocumentMargin(16)
        font = self.font()
        font.setPointSizeF(max(11.0, font.pointSizeF()))
        self.document().setDefaultFont(font)
        self.anchorClicked.connect(self._on_anchor)
        self._earlier: list[tuple[StoredMessage, str]] = []
        self._chat = ChatDocument(self.document(), theme)
        self._follow = True
        self._moving = False
        self._timer = QTimer(self)
        self._timer.setInterval(FLUSH_MS)
        self._timer.timeout.connect(self._flush)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.verticalScrollBar().rangeChanged.connect(self._on_range_changed)

    def set_theme(self, theme: Theme) -> None:
        """Draws everything again in other colours."""
        self._chat.theme = theme
        self._rebuild()

    def show_messages(self, messages: list[StoredMessage]) -> None:
        """Shows another chat, its end first."""
        self._timer.stop()
        self._earlier = [(message, "") for message in messages[:-SHOWN_AT_FIRST]]
        self._chat.clear()
        self._follow = True
        self._write_earlier_link()
        for message in messages[-SHOWN_AT_FIRST:]:
            self._chat.add(message)
        self._keep_place()

    def add_message(self, message: StoredMessage) -> None:
        """Adds a whole message and goes to it."""
        self._chat.add(message)
        self.follow()

    def begin_reply(self, message: StoredMessage) -> None:
        self._chat.begin_reply(message)
        self._keep_place()
        self._timer.start()

    def append_to_reply(self, text: str) -> None:
        """Takes more text; it is shown at the next tick."""
        self._chat.append(text)

    def end_reply(self, state: State, note: str = "") -> None:
        self._timer.stop()
        self._chat.end_reply(state, note)
        self._keep_place()

    def remove_from(self, message_id: int) -> None:
        self._timer.stop()
        self._chat.remove_from(message_id)

    def follow(self) -> None:
        """Goes to the end and stays there while text comes."""
        self._follow = True
        self._keep_place()

    def copy_last_reply(self) -> None:
        for entry in reversed(self._chat.entries):
            if entry.role == "assistant":
                self._copy(entry.content)
                return

    def last_reply_id(self) -> int | None:
        entries = self._chat.entries
        return entries[-1].id if entries and entries[-1].role == "assistant" else None

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        """Never reads anything: an empty answer would let Qt look for itself, a picture does not."""
        picture = QImage(1, 1, QImage.Format.Format_ARGB32)
        picture.fill(0)
        return picture

    def createMimeDataFromSelection(self) -> QMimeData:
        """Plain text only, with ordinary line breaks."""
        data = QMimeData()
        data.setText(self.textCursor().selectedText().replace("\u2029", "\n").replace("\u2028", "\n"))
        return data

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Of our own, since Qt's would copy a link as the document holds it, not its target."""
        menu = QMenu(self)
        copy = menu.addAction(self.tr("&Copy"), self.copy)
        copy.setEnabled(self.textCursor().hasSelection())
        menu.addAction(self.tr("Select &all"), self.selectAll)
        address = self.anchorAt(event.pos())
        if address.startswith(LINK):
            menu.addAction(self.tr("Copy the &link"), lambda: self._copy(link_target(address)))
        menu.exec(event.globalPos())
        menu.deleteLater()

    def showEvent(self, event: QShowEvent) -> None:
        """Qt goes to the text cursor when a view is shown first: to the beginning, away from the end."""
        self._moving = True
        super().showEvent(event)
        self._moving = False
        self._keep_place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keeps the column readable, and the line at the top where it was."""
        anchor = self.cursorForPosition(self.viewport().rect().topLeft())
        offset = self.cursorRect(anchor).top()
        side = max(0, (self.width() - MAX_TEXT_WIDTH) // 2)
        self.setViewportMargins(side, 0, side, 0)
        self._moving = True
        super().resizeEvent(event)
        self._moving = False
        if self._follow:
            self._keep_place()
        else:
            self._set_scroll(self.verticalScrollBar().value() + self.cursorRect(anchor).top() - offset)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints cards, code boxes and the bars of quotes behind the text."""
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(-self.horizontalScrollBar().value(), -self.verticalScrollBar().value())
        visible = QRectF(event.rect()).translated(0, self.verticalScrollBar().value())
        for frame in self.document().rootFrame().childFrames():
            self._paint_frame(painter, frame, visible)
        painter.end()
        super().paintEvent(event)

    def _paint_frame(self, painter: QPainter, frame: QTextFrame, visible: QRectF) -> None:
        rect = self.document().documentLayout().frameBoundingRect(frame)
        if not rect.intersects(visible):
            return
        form = frame.frameFormat()
        rect.adjust(form.leftMargin(), form.topMargin(), -form.rightMargin(), -form.bottomMargin())
        theme = self._chat.theme
        painter.setPen(Qt.PenStyle.NoPen)
        match form.property(FRAME_KIND):
            case "card":
                painter.setBrush(QColor(theme.card))
                painter.setPen(QColor(theme.border) if theme.card == theme.canvas else Qt.PenStyle.NoPen)
                painter.drawRoundedRect(rect, 12, 12)
            case "code":
                painter.setBrush(QColor(theme.code_background))
                painter.setPen(QColor(theme.border))
                painter.drawRoundedRect(rect, 8, 8)
            case "quote":
                painter.setBrush(QColor(theme.border))
                painter.drawRoundedRect(QRectF(rect.left() + 4, rect.top(), 3, rect.height()), 1.5, 1.5)
            case "divider":
                painter.setBrush(QColor(theme.border))
                painter.drawRect(QRectF(rect.left(), rect.center().y(), rect.width(), 1))
        for child in frame.childFrames():
            self._paint_frame(painter, child, visible)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.viewport().update()

    def _flush(self) -> None:
        if self._chat.refresh():
            self._keep_place()
            self.flushed.emit()

    def _rebuild(self) -> None:
        """Writes the same messages again; a running reply goes on."""
        entries, streaming = list(self._chat.entries), self._chat.is_streaming
        self._chat.clear()
        self._write_earlier_link()
        for index, entry in enumerate(entries):
            message = StoredMessage(
                entry.id, 0, "user" if entry.role == "user" else "assistant", entry.content, entry.state,
                entry.name if entry.role != "user" else "", 0.0,
            )  # fmt: skip
            if streaming and index == len(entries) - 1:
                self._chat.begin_reply(message)
                self._chat.refresh()
            else:
                self._chat.add(message, entry.note)
        self._keep_place()

    def _write_earlier_link(self) -> None:
        if self._earlier:
            text = self.tr("Show {count} earlier messages").format(count=len(self._earlier))
            self._chat.write_link(text, "action:earlier/0")

    def _show_earlier(self) -> None:
        """Adds some of the earlier messages above, without moving what is being read."""
        bar = self.verticalScrollBar()
        from_end = bar.maximum() - bar.value()
        some, self._earlier = self._earlier[-SHOWN_AT_FIRST:], self._earlier[:-SHOWN_AT_FIRST]
        self._follow = False
        self._chat.prepend([message for message, _ in some])
        self._rebuild()
        self._set_scroll(bar.maximum() - from_end)

    def _keep_place(self) -> None:
        if self._follow:
            self._set_scroll(self.verticalScrollBar().maximum())

    def _set_scroll(self, value: int) -> None:
        self._moving = True
        self.verticalScrollBar().setValue(value)
        self._moving = False

    def _on_scrolled(self, value: int) -> None:
        if not self._moving:
            self._follow = value >= self.verticalScrollBar().maximum() - 4

    def _on_range_changed(self, _minimum: int, maximum: int) -> None:
        if self._follow:
            self._set_scroll(maximum)

    def _on_anchor(self, url: QUrl) -> None:
        address = url.toString()
        if address.startswith(LINK):
            self._ask_about(link_target(address))
            return
        action, _, rest = address.removeprefix("action:").partition("/")
        numbers = [int(part) for part in rest.split("/")]
        if action == "copy":
            self._copy(self._chat.content_of(numbers[0]))
        elif action == "code":
            code = self._chat.code_of(*numbers)
            if code is not None:
                self._copy(code)
        elif action == "regenerate":
            self.regenerate.emit(numbers[0])
        elif action == "earlier":
            self._show_earlier()

    def _ask_about(self, target: str) -> None:
        if is_allowed_link(target) and ask_about_link(target, self):
            with system_libraries():
                QDesktopServices.openUrl(QUrl(target))

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.copied.emit()
