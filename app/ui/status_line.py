"""One line at the bottom: what the engine does now, how fast, and how full the context is."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from engine.requests import Finished


class StatusLine(QWidget):
    """Told of everything by the main window; holds no more than what it shows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.activity = self._label(self.tr("Activity"))
        self.context = self._label(self.tr("Context used"))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(4, 0, 4, 0)
        layout.addWidget(self.activity)
        layout.addStretch(1)
        layout.addWidget(self.context)
        self._context_size = 0
        self._prompt_tokens = 0
        self._written = 0
        self._first_at = 0.0
        self._is_writing = False

    def _label(self, name: str) -> QLabel:
        label = QLabel(self)
        label.setObjectName("statusLine")
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setAccessibleName(name)
        return label

    def show_activity(self, text: str) -> None:
        self.activity.setText(text)

    def show_copied(self) -> None:
        if not self._is_writing:
            self.show_activity(self.tr("Copied."))

    def set_context_size(self, tokens: int) -> None:
        self._context_size = tokens
        self._show_context(0)

    def begin_reply(self) -> None:
        self._prompt_tokens = self._written = 0
        self._is_writing = True
        self.show_activity(self.tr("Waiting…"))

    def show_prompt_progress(self, done: int, total: int) -> None:
        self._prompt_tokens = total
        share = 100 * done // total if total else 100
        self.show_activity(self.tr("Reading the prompt: {share} %").format(share=share))
        self._show_context(done)

    def count_token(self) -> None:
        """One more token was written; shown by `refresh`."""
        if not self._written:
            self._first_at = time.monotonic()
        self._written += 1

    def refresh(self) -> None:
        """Shows the speed of the running reply."""
        seconds = time.monotonic() - self._first_at
        if self._written < 2 or seconds <= 0:
            return
        self._show_speed((self._written - 1) / seconds, self._written)
        self._show_context(self._prompt_tokens + self._written)

    def show_finished(self, record: Finished) -> None:
        timings = record.timings
        self._show_speed(timings.write_tokens_per_second, timings.generated_tokens)
        self._show_context(timings.context_used)

    def end_reply(self) -> None:
        """However it ended; `show_finished` follows where it has figures."""
        self._is_writing = False
        if not self._written:
            self.show_activity(self.tr("Ready"))

    def _show_speed(self, speed: float, tokens: int) -> None:
        self.show_activity(
            self.tr("{speed:.1f} tokens/s · {tokens} tokens").format(speed=speed, tokens=tokens)
        )

    def _show_context(self, used: int) -> None:
        if self._context_size:
            text = self.tr("Context: {used:,} of {size:,} tokens")
            self.context.setText(text.format(used=used, size=self._context_size))
        else:
            self.context.clear()
