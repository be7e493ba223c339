"""Choose a model: those found on this disk, any other file, or the starter when there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.ui.background import BackgroundTask
from engine.memory import free_memory, readable_bytes
from engine.requests import LoadSettings

if TYPE_CHECKING:
    from app.library.model_facts import ModelFacts

FACTS = int(Qt.ItemDataRole.UserRole)

ListModels = Callable[[tuple[Path, ...], LoadSettings], "list[ModelFacts]"]


def list_models(folders: tuple[Path, ...], settings: LoadSettings) -> list[ModelFacts]:
    from app.library.local_models import list_models as list_them  # numpy comes with it

    return list_them(folders, settings)


class ModelPicker(QDialog):
    """chosen: a file to load; starter_wanted: fetch the starter; folder_added: look there too from now on."""

    chosen = Signal(Path)
    starter_wanted = Signal()
    folder_added = Signal(str)

    def __init__(self, parent: QWidget | None = None, lister: ListModels = list_models) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Choose a model"))
        self.resize(720, 440)
        self._lister = lister
        self._task: BackgroundTask | None = None
        self._folders: tuple[Path, ...] = ()
        self._settings = LoadSettings()

        self.note = QLabel(self)
        self.note.setWordWrap(True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        self.list = QListWidget(self)
        self.list.setAccessibleName(self.tr("Models on this computer"))
        self.list.setSpacing(2)
        self.list.setWordWrap(True)
        self.load_button = self._button(self.tr("&Load"), self._load)
        self.load_button.setProperty("primary", True)
        self.load_button.setDefault(True)
        self.file_button = self._button(self.tr("&Open file…"), self.open_file)
        self.folder_button = self._button(self.tr("&Add folder…"), self._add_folder)
        self.starter_button = self._button(self.tr("&Get the starter model"), self._get_starter)
        self.close_button = self._button(self.tr("&Close"), self.reject)
        buttons = QHBoxLayout()
        buttons.addWidget(self.file_button)
        buttons.addWidget(self.folder_button)
        buttons.addWidget(self.starter_button)
        buttons.addStretch(1)
        buttons.addWidget(self.close_button)
        buttons.addWidget(self.load_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 18)
        layout.setSpacing(12)
        layout.addWidget(self.note)
        layout.addWidget(self.list, 1)
        layout.addLayout(buttons)
        self.list.itemActivated.connect(self._load)
        self.list.currentItemChanged.connect(self._update_buttons)

    def show_models(self, folders: tuple[Path, ...], settings: LoadSettings) -> None:
        """Opens and fills the list, with the memory that settings take; the files are read in a thread."""
        self._folders, self._settings = folders, settings
        self.open()
        self.refresh()

    def refresh(self) -> None:
        """Reads the folders again."""
        if self._task is not None:
            self._task.cancel()
        self.list.clear()
        self.starter_button.hide()
        self.note.setText(self.tr("Looking for models…"))
        folders, settings = self._folders, self._settings
        lister = self._lister

        def work(_report: Callable[[Any], None], _should_stop: Callable[[], bool]) -> Any:
            return lister(folders, settings), free_memory()

        self._task = BackgroundTask(work, self)
        self._task.done.connect(self._show)
        self._task.failed.connect(self._show_failure)
        self._task.start()

    def open_file(self) -> None:
        """Asks for a file; nothing happens where none is chosen."""
        name, _ = QFileDialog.getOpenFileName(
            self, self.tr("Open a model file"), "", self.tr("GGUF models (*.gguf);;All files (*)")
        )
        if name:
            self._choose(Path(name))

    def _button(self, text: str, slot: Callable[[], None]) -> QPushButton:
        button = QPushButton(text, self)
        button.setAutoDefault(False)
        button.setAccessibleName(text.replace("&", ""))
        button.clicked.connect(slot)
        return button

    def _show(self, found: tuple[list[ModelFacts], int]) -> None:
        models, free = found
        models = sorted(models, key=lambda facts: bool(facts.problem))  # those that can be used first
        self.list.clear()
        for facts in models:
            item = QListWidgetItem(f"{facts.path.stem}\n{describe(facts, free)}", self.list)
            item.setData(FACTS, facts)
            item.setSizeHint(QSize(0, 2 * self.fontMetrics().lineSpacing() + 18))
            if facts.problem:
                item.setForeground(self.palette().placeholderText())
        usable = any(not facts.problem for facts in models)
        self.starter_button.setVisible(not usable)
        self.note.setText(
            self.tr("Models are used where they lie. You can also drop a .gguf file on the window.")
            if models
            else self.tr("No model was found on this computer yet. Get the starter model, or open a file.")
        )
        if models:
            self.list.setCurrentRow(next((i for i, facts in enumerate(models) if not facts.problem), 0))
            self.list.setFocus()
        else:
            self.starter_button.setFocus()
        self._update_buttons()

    def _show_failure(self, error: Any) -> None:
        self.note.setText(f"{error.title} {error.advice}")
        self.starter_button.show()

    def _update_buttons(self) -> None:
        item = self.list.currentItem()
        self.load_button.setEnabled(item is not None and not item.data(FACTS).problem)

    def _load(self) -> None:
        item = self.list.currentItem()
        if item is not None and not item.data(FACTS).problem:
            self._choose(item.data(FACTS).path)

    def _choose(self, path: Path) -> None:
        self.accept()
        self.chosen.emit(path)

    def _get_starter(self) -> None:
        self.accept()
        self.starter_wanted.emit()

    def _add_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, self.tr("Add a folder with models"))
        if name:
            self.folder_added.emit(name)
            self._folders = (*self._folders, Path(name))
            self.refresh()


def describe(facts: ModelFacts, free: int) -> str:
    """One line: name, family, size, type, and "needs N GB, M GB free"; or what is wrong with the file."""
    if facts.problem:
        return facts.problem
    parts = [facts.name, facts.family, readable_bytes(facts.file_bytes), facts.main_type]
    if facts.memory is not None:
        needed = QCoreApplication.translate("ModelPicker", "needs {needed}, {free} free")
        parts.append(needed.format(needed=readable_bytes(facts.memory.total), free=readable_bytes(free)))
    return "  ·  ".join(part for part in parts if part)
