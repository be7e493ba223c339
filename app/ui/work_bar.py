"""Progress of one long work (loading, fetching) with a button that cancels it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QWidget

STEPS = 1000


class WorkBar(QWidget):
    """Hidden unless a work runs."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.label = QLabel(self)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setProperty("muted", True)
        self.bar = QProgressBar(self)
        self.bar.setRange(0, STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress"))
        self.cancel_button = QPushButton(self.tr("&Cancel"), self)
        self.cancel_button.setAccessibleName(self.tr("Cancel"))
        self.cancel_button.clicked.connect(self.cancelled)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(4, 0, 4, 0)
        layout.setSpacing(12)
        layout.addWidget(self.label)
        layout.addWidget(self.bar, 1)
        layout.addWidget(self.cancel_button)
        self.hide()

    def show_progress(self, text: str, share: float) -> None:
        """share: 0 to 1."""
        self.label.setText(text)
        self.bar.setValue(int(STEPS * min(1.0, max(0.0, share))))
        self.show()
