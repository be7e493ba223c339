"""Colours and shapes: one light theme, one dark, and the system's own colours where it asks for contrast.

The theme follows the system while the window is open: `ThemeKeeper.changed` tells those who hold colours.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app.text.highlight import Role


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours as #rrggbb. canvas: behind the chat; panel: at its sides; card: a person's message."""

    canvas: str
    panel: str
    card: str
    code_background: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    link: str
    danger: str
    code: dict[Role, str]


LIGHT = Theme(
    canvas="#fcfbf9",
    panel="#f3f1ec",
    card="#efece5",
    code_background="#f4f2ed",
    border="#d9d4ca",
    text="#24221e",
    muted="#68635a",
    accent="#2f6654",
    on_accent="#ffffff",
    link="#1f6288",
    danger="#a03225",
    code={
        "plain": "#24221e",
        "keyword": "#8a3b74",
        "string": "#3d6a2c",
        "number": "#9a4a12",
        "comment": "#6f6a60",
        "name": "#1f5f8b",
        "inserted": "#2c6a34",
        "deleted": "#a03225",
    },
)

DARK = Theme(
    canvas="#1e1f21",
    panel="#18191b",
    card="#2a2c2f",
    code_background="#161719",
    border="#3b3e42",
    text="#e7e5e0",
    muted="#a29e95",
    accent="#7dbfa8",
    on_accent="#10201a",
    link="#85bde0",
    danger="#f0968a",
    code={
        "plain": "#e7e5e0",
        "keyword": "#d9a3cb",
        "string": "#a5cf90",
        "number": "#e8b183",
        "comment": "#98948b",
        "name": "#8fc4ea",
        "inserted": "#a5cf90",
        "deleted": "#f0968a",
    },
)


def contrast_theme(palette: QPalette) -> Theme:
    """The system's own colours and nothing between them."""
    base, text = palette.base().color().name(), palette.text().color().name()
    link = palette.link().color().name()
    roles: tuple[Role, ...] = tuple(LIGHT.code)
    return Theme(
        canvas=base,
        panel=base,
        card=base,
        code_background=base,
        border=text,
        text=text,
        muted=text,
        accent=palette.highlight().color().name(),
        on_accent=palette.highlightedText().color().name(),
        link=link,
        danger=text,
        code=dict.fromkeys(roles, text),
    )


def make_palette(theme: Theme) -> QPalette:
    palette = QPalette()
    colours = {
        QPalette.ColorRole.Window: theme.panel,
        QPalette.ColorRole.WindowText: theme.text,
        QPalette.ColorRole.Base: theme.canvas,
        QPalette.ColorRole.AlternateBase: theme.panel,
        QPalette.ColorRole.Text: theme.text,
        QPalette.ColorRole.Button: theme.panel,
        QPalette.ColorRole.ButtonText: theme.text,
        QPalette.ColorRole.ToolTipBase: theme.card,
        QPalette.ColorRole.ToolTipText: theme.text,
        QPalette.ColorRole.PlaceholderText: theme.muted,
        QPalette.ColorRole.Highlight: theme.accent,
        QPalette.ColorRole.HighlightedText: theme.on_accent,
        QPalette.ColorRole.Link: theme.link,
        QPalette.ColorRole.LinkVisited: theme.link,
        QPalette.ColorRole.Accent: theme.accent,
    }
    for role, colour in colours.items():
        palette.setColor(role, QColor(colour))
    for role in (QPalette.ColorRole.Text, QPalette.ColorRole.WindowText, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.muted))
    return palette


def style_sheet(theme: Theme) -> str:
    """Shapes for the few named widgets; all else is drawn by the style from the palette."""
    return f"""
    QMainWindow, QDialog {{ background: {theme.canvas}; }}
    #side, #sidePanel {{ background: {theme.panel}; }}
    #canvas, #emptyPage {{ background: {theme.canvas}; }}
    #chatView {{ background: {theme.canvas}; border: none; }}
    #chatList, #chatList:focus {{ background: transparent; border: none; outline: none; padding: 0; }}
    #chatList::item {{ padding: 8px 10px; border-radius: 8px; color: {theme.text}; }}
    #chatList::item:hover {{ background: {theme.card}; }}
    #chatList::item:selected {{ background: {theme.border}; color: {theme.text}; }}
    #chatList::item:selected:focus {{ border: 2px solid {theme.accent}; padding: 6px 8px; }}
    QListWidget {{ outline: none; }}
    QListWidget::item {{ padding: 6px 8px; border-radius: 8px; }}
    QListWidget::item:hover {{ background: {theme.card}; }}
    QListWidget::item:selected {{ background: {theme.border}; color: {theme.text}; }}
    #promptFrame {{ background: {theme.canvas}; border: 1px solid {theme.border}; border-radius: 14px; }}
    #promptFrame[focused="true"] {{ border: 1px solid {theme.accent}; }}
    #promptEdit, #promptEdit:focus {{ background: transparent; border: none; padding: 0; }}
    #panelScroll, #panelScroll > QWidget > QWidget {{ background: {theme.panel}; border: none; }}
    QLabel[muted="true"] {{ color: {theme.muted}; }}
    QLabel[title="true"] {{ font-weight: 600; }}
    QPushButton, QToolButton {{
        background: transparent; color: {theme.text}; border: 1px solid {theme.border};
        border-radius: 8px; padding: 6px 12px;
    }}
    QPushButton:hover, QToolButton:hover {{ background: {theme.card}; }}
    QPushButton:focus, QToolButton:focus {{ border: 2px solid {theme.accent}; padding: 5px 11px; }}
    QPushButton:disabled, QToolButton:disabled {{ color: {theme.muted}; }}
    QPushButton[primary="true"] {{
        background: {theme.accent}; color: {theme.on_accent}; border: 1px solid {theme.accent};
        font-weight: 600;
    }}
    QPushButton[primary="true"]:focus {{ border: 2px solid {theme.text}; }}
    QPushButton[primary="true"]:disabled {{
        background: transparent; color: {theme.muted}; border: 1px solid {theme.border};
    }}
    QToolButton[quiet="true"] {{ border: 1px solid transparent; }}
    QToolButton[quiet="true"]:checked {{ background: {theme.card}; }}
    QToolButton[quiet="true"]:focus {{ border: 2px solid {theme.accent}; padding: 5px 11px; }}
    QToolButton::menu-indicator {{ image: none; }}
    QPlainTextEdit, QLineEdit, QListWidget {{
        background: {theme.canvas}; color: {theme.text}; border: 1px solid {theme.border};
        border-radius: 8px; padding: 5px;
    }}
    QPlainTextEdit:focus, QLineEdit:focus, QListWidget:focus {{
        border: 2px solid {theme.accent}; padding: 4px;
    }}
    QProgressBar {{
        background: {theme.card}; border: none; border-radius: 4px; max-height: 8px; min-height: 8px;
    }}
    QProgressBar::chunk {{ background: {theme.accent}; border-radius: 4px; }}
    #qt_msgbox_informativelabel {{ min-width: 340px; }}
    #statusLine {{ color: {theme.muted}; }}
    #notice {{ background: {theme.card}; border-radius: 10px; }}
    QScrollBar:vertical {{ background: transparent; width: 12px; margin: 2px; }}
    QScrollBar::handle:vertical {{ background: {theme.border}; border-radius: 4px; min-height: 36px; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; width: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QSplitter::handle {{ background: {theme.border}; }}
    """


class ThemeKeeper(QObject):
    """Gives the application the theme that the system asks for, now and whenever that changes."""

    changed = Signal()

    def __init__(self, application: QApplication) -> None:
        super().__init__(application)
        self._application = application
        self.theme = LIGHT
        hints = application.styleHints()
        hints.colorSchemeChanged.connect(self._apply)
        if hasattr(hints, "accessibility"):  # Qt 6.10
            hints.accessibility().contrastPreferenceChanged.connect(self._apply)
        self._apply()

    def system_is_dark(self) -> bool:
        return self._application.styleHints().colorScheme() == Qt.ColorScheme.Dark

    def _apply(self) -> None:
        hints = self._application.styleHints()
        wants_contrast = (
            hasattr(hints, "accessibility")
            and hints.accessibility().contrastPreference() == Qt.ContrastPreference.HighContrast
        )
        if wants_contrast:
            self._application.setPalette(QPalette())
            self.theme = contrast_theme(self._application.palette())
        else:
            self.theme = DARK if self.system_is_dark() else LIGHT
            self._application.setPalette(make_palette(self.theme))
        self._application.setStyleSheet(style_sheet(self.theme))
        self.changed.emit()
