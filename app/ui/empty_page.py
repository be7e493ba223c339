"""What stands where the chat will be: what to do first."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget


class EmptyPage(QWidget):
    """Two buttons until a model is there, then a friendly line."""

    choose_wanted = Signal()
    starter_wanted = Signal()

    def __init__(self, icon: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("emptyPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        picture = QLabel(self)
        picture.setAccessibleName("Causerie")
        pixmap = QPixmap(str(icon))
        pixmap.setDevicePixelRatio(max(1.0, pixmap.width() / 72))
        picture.setPixmap(pixmap)
        self.title = QLabel(self)
        font = self.title.font()
        font.setPointSizeF(font.pointSizeF() * 1.7)
        font.setWeight(font.Weight.DemiBold)
        self.title.setFont(font)
        self.text = QLabel(self)
        self.text.setProperty("muted", True)
        self.text.setWordWrap(True)
        self.text.setContentsMargins(24, 0, 24, 0)
        self.starter_button = QPushButton(self.tr("&Get the starter model"), self)
        self.starter_button.setProperty("primary", True)
        self.starter_button.setAccessibleName(self.tr("Get the starter model"))
        self.choose_button = QPushButton(self.tr("&Choose a model…"), self)
        self.choose_button.setAccessibleName(self.tr("Choose a model"))
        buttons = QHBoxLayout()
        buttons.setSpacing(10)
        buttons.addStretch(1)
        buttons.addWidget(self.starter_button)
        buttons.addWidget(self.choose_button)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setSpacing(14)
        layout.addStretch(2)
        layout.addWidget(picture, 0, Qt.AlignmentFlag.AlignHCenter)
        for label in (self.title, self.text):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            layout.addWidget(label)
        layout.addSpacing(6)
        layout.addLayout(buttons)
        layout.addStretch(3)
        self.choose_button.clicked.connect(self.choose_wanted)
        self.starter_button.clicked.connect(self.starter_wanted)
        self.show_state(model="", loading=False, starter_size="")

    def show_state(self, model: str, loading: bool, starter_size: str) -> None:
        """model: name of the loaded one, "" for none. starter_size: "" where the starter is here already."""
        if model:
            self.title.setText(self.tr("What shall we talk about?"))
            self.text.setText(
                self.tr("{model} is ready. All it reads and writes stays on this computer.").format(
                    model=model
                )
            )
        elif loading:
            self.title.setText(self.tr("One moment…"))
            self.text.setText(self.tr("The model is being made ready. You can already write."))
        else:
            self.title.setText(self.tr("Welcome to Causerie"))
            self.text.setText(
                self.tr("Chat with a language model that runs on this computer alone. It needs a model: "
                        "a .gguf file you have, or the small starter model.")
            )  # fmt: skip
        self.choose_button.setVisible(not model and not loading)
        self.starter_button.setVisible(not model and not loading and bool(starter_size))
        if starter_size:
            self.starter_button.setText(self.tr("&Get the starter model ({size})").format(size=starter_size))
