"""Small questions and messages.  Foreign text in them is always plain text."""

from __future__ import annotations

from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QInputDialog,
    QLabel,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from engine.errors import CauserieError
from engine.templates.families import FAMILIES


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


class LinkDialog(QDialog):
    """The whole target of a link, however long, and where it really leads."""

    def __init__(self, target: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(_tr("Open a link?"))
        self.resize(480, 200)
        host = urlsplit(target).hostname or target.partition(":")[2]
        question = QLabel(_tr("A message wants to open this address at {host}:").format(host=host), self)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setWordWrap(True)
        self.address = QPlainTextEdit(target, self)
        self.address.setReadOnly(True)
        self.address.setTabChangesFocus(True)
        self.address.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        self.address.setAccessibleName(_tr("Address"))
        self.open_button = QPushButton(_tr("&Open in browser"), self)
        self.cancel_button = QPushButton(_tr("&Cancel"), self)
        self.cancel_button.setDefault(True)
        self.open_button.clicked.connect(self.accept)
        self.cancel_button.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.open_button)
        buttons.addWidget(self.cancel_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 16)
        layout.setSpacing(12)
        layout.addWidget(question)
        layout.addWidget(self.address, 1)
        layout.addLayout(buttons)
        self.cancel_button.setFocus()


def ask_about_link(target: str, parent: QWidget | None = None) -> bool:
    """Shows the whole target and asks whether to open it in the browser."""
    dialog = LinkDialog(target, parent)
    answer = dialog.exec()
    dialog.deleteLater()
    return answer == QDialog.DialogCode.Accepted


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


def ask_for_template(file_name: str, parent: QWidget | None = None) -> str:
    """Asks for the family of a model without a chat template; "" where nobody says."""
    dialog = QInputDialog(parent)
    dialog.setWindowTitle(_tr("How was this model trained to chat?"))
    dialog.setLabelText(
        _tr("{file} has no chat template that can be used. Choose that of its family, or cancel:").format(
            file=file_name
        )
    )
    for label in dialog.findChildren(QLabel):
        label.setTextFormat(Qt.TextFormat.PlainText)
    dialog.setComboBoxItems(sorted(family.name for family in FAMILIES))
    answer = dialog.exec()
    dialog.deleteLater()
    return dialog.textValue() if answer == QDialog.DialogCode.Accepted else ""


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
