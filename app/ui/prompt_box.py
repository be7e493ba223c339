"""Where the person types: Enter sends, Shift+Enter breaks the line, Esc stops the reply."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QPushButton, QWidget

MAX_LINES = 8


class PromptEdit(QPlainTextEdit):
    """A text field that grows with its text up to MAX_LINES."""

    submitted = Signal()
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("promptEdit")
        self.setAccessibleName(self.tr("Message"))
        self.setAccessibleDescription(self.tr("Enter sends the message, Shift+Enter begins a new line."))
        self.setPlaceholderText(self.tr("Write a message…"))
        self.setTabChangesFocus(True)
        font = self.font()
        font.setPointSizeF(max(11.0, font.pointSizeF()))
        self.setFont(font)
        self._composing = False
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            super().keyPressEvent(event)
        elif self._composing:
            event.accept()  # it confirms what the input method offers
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.insertPlainText("\n")
        else:
            event.accept()
            self.submitted.emit()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._composing = False
        self.focus_changed.emit(False)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Files are for the window, which opens models; text is for this field."""
        return source.hasText() and not source.hasUrls()

    def _fit(self) -> None:
        lines = max(1, min(MAX_LINES, int(self.document().size().height())))
        frame = 2 * self.frameWidth() + 2 * int(self.document().documentMargin())
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + frame + 2)


class PromptBox(QFrame):
    """The text field with its button, which sends, or stops a running reply."""

    sent = Signal(str)
    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("promptFrame")
        self.edit = PromptEdit(self)
        self.button = QPushButton(self)
        self.button.setProperty("primary", True)
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 8, 8, 8)
        layout.addWidget(self.edit, 1)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        self.setFocusProxy(self.edit)
        self.edit.submitted.connect(self._submit)
        self.edit.focus_changed.connect(self._show_focus)
        self.edit.textChanged.connect(self._update_button)
        self.button.clicked.connect(self._on_button)
        self.set_replying(False)

    def set_replying(self, replying: bool) -> None:
        """While a reply runs the button stops it, and nothing can be sent."""
        self._replying = replying
        self.button.setText(self.tr("&Stop") if replying else self.tr("&Send"))
        self.button.setAccessibleName(self.tr("Stop the reply") if replying else self.tr("Send the message"))
        self.button.setToolTip(self.tr("Esc") if replying else self.tr("Enter"))
        self._update_button()

    def text(self) -> str:
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LanguageChange:
            self.set_replying(self._replying)
        return super().event(event)

    def _on_button(self) -> None:
        if self._replying:
            self.stopped.emit()
        else:
            self._submit()

    def _submit(self) -> None:
        if not self._replying and self.text().strip():
            self.sent.emit(self.text())

    def _update_button(self) -> None:
        self.button.setEnabled(self._replying or bool(self.text().strip()))

    def _show_focus(self, focused: bool) -> None:
        self.setProperty("focused", focused)
        self.style().unpolish(self)
        self.style().polish(self)
