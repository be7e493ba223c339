"""Small questions and messages.  Foreign text in them is always plain text."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from engine.errors import CauserieError


def _tr(text: str) -> str:
    return QCoreApplication.translate("Dialogs", text)


def _box(parent: QWidget | None, title: str, text: str, detail: str) -> QMessageBox:
    box = QMessageBox(parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle(title)
    box.setText(text)
    box.setInformativeText(detail)
    for label in box.findChildren(QWidget):
        if label.objectName() == "qt_msgbox_informativelabel":
            label.setProperty("textFormat", Qt.TextFormat.PlainText)  # Qt guesses for this one
    return box


def show_error(error: CauserieError, parent: QWidget | None = None) -> None:
    """What is wrong and what to do next; returns at once, the box stays until it is closed."""
    box = _box(parent, "Causerie", error.title, error.advice)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setObjectName("errorBox")
    box.open()


def ask_about_link(target: str, parent: QWidget | None = None) -> bool:
    """Shows the whole target and asks whether to open it in the browser."""
    box = _box(parent, _tr("Open a link?"), _tr("A message wants to open this address:"), target)
    open_button = box.addButton(_tr("&Open in browser"), QMessageBox.ButtonRole.AcceptRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.exec()
    return box.clickedButton() is open_button


def confirm_delete(title: str, parent: QWidget | None = None) -> bool:
    """Asks before a chat is deleted for good."""
    box = _box(
        parent, _tr("Delete chat?"), _tr("Delete “{title}”?").format(title=title),
        _tr("The chat and all its messages will be gone for good."),
    )  # fmt: skip
    delete = box.addButton(_tr("&Delete"), QMessageBox.ButtonRole.DestructiveRole)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.exec()
    return box.clickedButton() is delete


def confirm_replace(error: CauserieError, parent: QWidget | None = None) -> bool:
    """Asks whether to give up the loaded model so that another one has room."""
    box = _box(
        parent, _tr("Not enough memory"), error.title,
        _tr("The loaded model can be closed first. If there is too little memory even then, "
            "no model will be loaded."),
    )  # fmt: skip
    replace = box.addButton(_tr("Close it and &load"), QMessageBox.ButtonRole.AcceptRole)
    keep = box.addButton(_tr("&Keep it"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(keep)
    box.exec()
    return box.clickedButton() is replace


def show_about(parent: QWidget | None = None) -> None:
    """Name, version and what it is."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("causerie")
    except PackageNotFoundError:
        number = ""
    box = _box(
        parent, _tr("About Causerie"), f"Causerie {number}".strip(),
        _tr("Chat with language models that run on this computer alone. Licensed under Apache-2.0; "
            "uses Qt under the LGPL."),
    )  # fmt: skip
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.open()
