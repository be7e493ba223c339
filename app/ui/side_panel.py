"""The settings that matter, one click away; each control is bound to one declared setting."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QDoubleSpinBox,
    QFrame,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.settings import DECLARATIONS, Settings
from engine.requests import LoadSettings, SamplingSettings

LARGEST = 2**31 - 1
SAVE_MS = 600


class SidePanel(QWidget):
    """changed: a setting was changed and stands in `settings`; reload_wanted: load the model with them."""

    changed = Signal()
    reload_wanted = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.settings = settings
        self.setObjectName("sidePanel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(264)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_MS)
        self._timer.timeout.connect(self.changed)
        self._loaded_with: tuple[object, ...] | None = None
        self._pin_threads = settings.pin_threads  # as the program began: later it has no effect

        content = QWidget(self)
        self._rows = QVBoxLayout(content)
        self._rows.setContentsMargins(16, 16, 16, 16)
        self._rows.setSpacing(6)
        self._add_system_prompt()
        self._add_title(self.tr("Replies"))
        self._add_number("temperature", self.tr("&Temperature"), 0.1)
        self._add_number("top_p", self.tr("To&p-p"), 0.05)
        self._add_count("max_tokens", self.tr("&Longest reply (tokens)"), self.tr("until it ends"), 64)
        self._add_title(self.tr("Model"))
        self._add_count("context_size", self.tr("Conte&xt size (tokens)"), self.tr("automatic"), 512)
        self._add_switch("eight_bit_context", self.tr("Context in &8 bits"))
        self._add_switch("weights_in_place", self.tr("Save &memory (slower)"))
        self._add_count("threads", self.tr("Th&reads"), self.tr("automatic"), 1)
        self.reload_button = QPushButton(self.tr("Load the model &again"), content)
        self.reload_button.setAccessibleName(self.tr("Load the model again with these settings"))
        self.reload_button.clicked.connect(self.reload_wanted)
        self.reload_button.hide()
        self._rows.addSpacing(4)
        self._rows.addWidget(self.reload_button)
        self._rows.addStretch(1)

        scroll = QScrollArea(self)
        scroll.setObjectName("panelScroll")
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)

    def sampling(self) -> SamplingSettings:
        return self.settings.sampling()

    def load_settings(self) -> LoadSettings:
        return LoadSettings(
            context_size=self.settings.context_size,
            threads=self.settings.threads,
            kv="q8" if self.settings.eight_bit_context else "f16",
            repack=not self.settings.weights_in_place,
            pin_threads=self._pin_threads,
        )

    def mark_loaded(self, settings: LoadSettings) -> None:
        """Remembers with what the model was loaded, to offer loading again when that has changed."""
        self._loaded_with = _shown_of(settings)
        self._offer_reload()

    def flush(self) -> None:
        """Tells of a change now that would be told in a moment."""
        if self._timer.isActive():
            self._timer.stop()
            self.changed.emit()

    def _add_title(self, text: str) -> None:
        label = QLabel(text, self)
        label.setProperty("title", True)
        self._rows.addSpacing(14)
        self._rows.addWidget(label)

    def _add_labelled(self, name: str, text: str, control: QWidget) -> None:
        label = QLabel(text, self)
        label.setProperty("muted", True)
        label.setBuddy(control)
        self._rows.addWidget(label)
        self._add_control(name, text, control)

    def _add_control(self, name: str, text: str, control: QWidget) -> None:
        control.setAccessibleName(text.replace("&", ""))
        control.setToolTip(DECLARATIONS[name].description)
        control.setAccessibleDescription(DECLARATIONS[name].description)
        control.setObjectName(name)
        control.setMinimumHeight(32)
        self._rows.addWidget(control)

    def _add_system_prompt(self) -> None:
        self.system_prompt = QPlainTextEdit(self.settings.system_prompt, self)
        self.system_prompt.setTabChangesFocus(True)
        self.system_prompt.setFixedHeight(110)
        self.system_prompt.setPlaceholderText(self.tr("For example: Answer briefly."))
        self.system_prompt.textChanged.connect(self._on_system_prompt)
        self._add_labelled("system_prompt", self.tr("S&ystem prompt"), self.system_prompt)

    def _add_number(self, name: str, text: str, step: float) -> None:
        declared = DECLARATIONS[name]
        box = QDoubleSpinBox(self)
        box.setDecimals(2)
        box.setRange(declared.minimum or 0.0, declared.maximum or 1.0)
        box.setSingleStep(step)
        box.setValue(getattr(self.settings, name))
        box.valueChanged.connect(partial(self._set_number, name))
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._add_labelled(name, text, box)

    def _add_count(self, name: str, text: str, none_text: str, step: int) -> None:
        """A count that may be left to the program, shown as none_text."""
        declared = DECLARATIONS[name]
        box = QSpinBox(self)
        box.setRange(0, int(min(declared.maximum or LARGEST, LARGEST)))
        box.setSpecialValueText(none_text)
        box.setSingleStep(step)
        box.setGroupSeparatorShown(True)
        box.setValue(getattr(self.settings, name) or 0)
        box.valueChanged.connect(partial(self._set_count, name))
        box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._add_labelled(name, text, box)

    def _add_switch(self, name: str, text: str) -> None:
        box = QCheckBox(text, self)
        box.setChecked(getattr(self.settings, name))
        box.toggled.connect(partial(self._set, name))
        self._add_control(name, text, box)

    def _on_system_prompt(self) -> None:
        self._set("system_prompt", self.system_prompt.toPlainText())

    def _set_number(self, name: str, value: float) -> None:
        self._set(name, round(value, 2))  # the box counts in steps that binary fractions miss

    def _set_count(self, name: str, value: int) -> None:
        self._set(name, value or None)

    def _set(self, name: str, value: object) -> None:
        setattr(self.settings, name, value)
        self._offer_reload()
        self._timer.start()

    def _offer_reload(self) -> None:
        now = _shown_of(self.load_settings())
        self.reload_button.setVisible(self._loaded_with is not None and now != self._loaded_with)


def _shown_of(settings: LoadSettings) -> tuple[object, ...]:
    """What this panel has controls for."""
    return settings.context_size, settings.threads, settings.kv, settings.repack
