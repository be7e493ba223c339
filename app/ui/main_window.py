"""Puts the parts of the window together; what they do is in the two controllers."""

from __future__ import annotations

import contextlib
from itertools import pairwise
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QIcon,
)
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMainWindow,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app import paths
from app.chats.store import ChatStore
from app.settings import Settings, save
from app.ui.chat_controller import ChatController, ReplySettings
from app.ui.chat_list import ChatList
from app.ui.chat_view import MAX_TEXT_WIDTH, ChatView
from app.ui.dialogs import ask_for_template, confirm_replace, show_error
from app.ui.empty_page import EmptyPage
from app.ui.engine_bridge import EngineBridge
from app.ui.model_controller import ModelController, missing_starter_size
from app.ui.model_picker import ModelPicker
from app.ui.notice_bar import NoticeBar
from app.ui.prompt_box import PromptBox
from app.ui.side_panel import SidePanel
from app.ui.status_line import StatusLine
from app.ui.theme import ThemeKeeper
from app.ui.window_actions import add_actions
from app.ui.work_bar import WorkBar
from engine.errors import CauserieError


class MainWindow(QMainWindow):
    """`load_model` and `chats.send` are what a person does most; tests do it by the same two."""

    def __init__(
        self, store: ChatStore, settings: Settings, themes: ThemeKeeper, bridge: EngineBridge | None = None
    ) -> None:
        super().__init__()
        self.settings = settings
        self._store = store
        self._themes = themes
        self.bridge = bridge or EngineBridge(parent=self)
        self.setWindowTitle("Causerie")
        self.setWindowIcon(QIcon(str(paths.resources_folder() / "icons" / "causerie.png")))
        self.setAcceptDrops(True)
        self.setMinimumSize(640, 420)
        self.resize(1080, 720)
        self._make_parts()
        self.chats = ChatController(store, self.view, self.bridge, self._reply_settings, self)
        self.models = ModelController(self.bridge, self.work_bar, self.panel.load_settings, parent=self)
        self.picker = ModelPicker(self)
        self._lay_out()
        add_actions(self)
        self._connect()
        self.panel.setVisible(settings.side_panel_open)
        self._restore_geometry()
        self._show_chats()
        self._show_model()
        self.prompt.setFocus()

    def load_model(self, path: Path) -> None:
        self.models.load(path)

    def show_last_chat(self) -> None:
        """Opens the chat that was changed last, where there is one."""
        if self.chat_list.list.count():
            self.chat_list.list.setCurrentRow(0)

    def add_notice(self, text: str) -> None:
        self.notices.add(text)

    def _make_parts(self) -> None:
        self.chat_list = ChatList(self)
        self.view = ChatView(self._themes.theme, self)
        self.empty_page = EmptyPage(paths.resources_folder() / "icons" / "causerie.png", self)
        self.prompt = PromptBox(self)
        self.panel = SidePanel(self.settings, self)
        self.status = StatusLine(self)
        self.work_bar = WorkBar(self)
        self.notices = NoticeBar(self)
        self.model_button = self._tool_button(self.tr("Model"))
        self.settings_button = self._tool_button(self.tr("Settings"))
        self.settings_button.setCheckable(True)
        self.more_button = self._tool_button(self.tr("More"))
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    def _tool_button(self, name: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(name)
        button.setAccessibleName(name)
        button.setProperty("quiet", True)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button

    def _lay_out(self) -> None:
        header = QHBoxLayout()
        header.setContentsMargins(12, 8, 12, 4)
        header.addWidget(self.model_button)
        header.addStretch(1)
        header.addWidget(self.settings_button)
        header.addWidget(self.more_button)
        self.pages = QStackedWidget(self)
        self.pages.addWidget(self.empty_page)
        self.pages.addWidget(self.view)
        foot = QWidget(self)
        foot.setMaximumWidth(MAX_TEXT_WIDTH + 32)
        below = QVBoxLayout(foot)
        below.setContentsMargins(16, 4, 16, 10)
        below.setSpacing(8)
        for widget in (self.notices, self.work_bar, self.prompt, self.status):
            below.addWidget(widget)
        foot_row = QHBoxLayout()
        foot_row.addStretch(1)
        foot_row.addWidget(foot, 1000)
        foot_row.addStretch(1)
        canvas = QWidget(self)
        canvas.setObjectName("canvas")
        canvas.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        middle = QVBoxLayout(canvas)
        middle.setContentsMargins(0, 0, 0, 0)
        middle.setSpacing(0)
        middle.addLayout(header)
        middle.addWidget(self.pages, 1)
        middle.addLayout(foot_row)
        root = QWidget(self)
        row = QHBoxLayout(root)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.chat_list)
        row.addWidget(canvas, 1)
        row.addWidget(self.panel)
        self.setCentralWidget(root)
        order = [self.prompt.edit, self.prompt.button, self.chat_list.new_button, self.chat_list.list,
                 self.model_button, self.settings_button, self.more_button, self.view]  # fmt: skip
        for before, after in pairwise(order):
            QWidget.setTabOrder(before, after)

    def _connect(self) -> None:
        self.chat_list.new_wanted.connect(self.new_chat)
        self.chat_list.opened.connect(self.chats.open_chat)
        self.chat_list.renamed.connect(self.chats.rename_chat)
        self.chat_list.deleted.connect(self.chats.delete_chat)
        self.prompt.sent.connect(self._send)
        self.prompt.stopped.connect(self.chats.stop)
        self.model_button.clicked.connect(self.choose_model)
        self.settings_button.clicked.connect(self._show_panel)
        self.empty_page.choose_wanted.connect(self.choose_model)
        self.empty_page.starter_wanted.connect(self.models.get_starter)
        self.picker.chosen.connect(self.load_model)
        self.picker.starter_wanted.connect(self.models.get_starter)
        self.picker.folder_added.connect(self._add_folder)
        self.panel.changed.connect(self._save_settings)
        self.panel.reload_wanted.connect(self.models.reload)
        self.models.ready.connect(self._on_model_ready)
        self.models.changed.connect(self._show_model)
        self.models.failed.connect(self._show_error)
        self.models.no_room.connect(self._offer_to_replace)
        self.chats.failed.connect(self._show_error)
        self.chats.chats_changed.connect(self._show_chats)
        self.chats.chat_shown.connect(self._show_page)
        self.chats.replying_changed.connect(self._on_replying)
        self.chats.reply_finished.connect(self.status.show_finished)
        self.bridge.prompt_progress.connect(self.status.show_prompt_progress)
        self.bridge.text.connect(self.status.count_token)
        self.view.flushed.connect(self.status.refresh)
        self.view.copied.connect(self.status.show_copied)
        self._themes.changed.connect(self._on_theme)

    def _send(self, text: str) -> None:
        if self.bridge.info is None and not self.models.is_busy:
            self.choose_model()
        elif self.chats.send(text):
            self.prompt.set_text("")

    def _reply_settings(self) -> ReplySettings:
        return ReplySettings(self.settings.system_prompt, self.panel.sampling(), self.settings.max_tokens)

    def new_chat(self) -> None:
        self.chats.new_chat()
        self._show_chats()
        self.prompt.setFocus()

    def choose_model(self) -> None:
        folders = tuple(Path(name) for name in self.settings.model_folders)
        self.picker.show_models(folders, self.panel.load_settings())

    def _add_folder(self, folder: str) -> None:
        if folder not in self.settings.model_folders:
            self.settings.model_folders = (*self.settings.model_folders, folder)
            self._save_settings()

    def _show_panel(self) -> None:
        self.panel.setVisible(self.settings_button.isChecked())
        self.settings.side_panel_open = self.settings_button.isChecked()
        self._save_settings()

    def _show_chats(self) -> None:
        try:
            self.chat_list.set_chats(self._store.chats(), self.chats.chat_id)
        except CauserieError as error:
            self._show_error(error)
        self._show_page()

    def _show_page(self) -> None:
        self.pages.setCurrentWidget(self.empty_page if self.chats.chat_id is None else self.view)

    def _show_model(self) -> None:
        info = self.bridge.info
        name = info.path.stem if info is not None else ""
        self.model_button.setText(f"{name or self.tr('No model')}  ▾")
        self.model_button.setAccessibleName(self.tr("Model: {name}").format(name=name or self.tr("none")))
        self.empty_page.show_state(name, self.models.is_busy, missing_starter_size())
        self.settings_button.setChecked(self.settings.side_panel_open)

    def _on_model_ready(self, info: object, used: object) -> None:
        self.status.set_context_size(info.context_size)  # type: ignore[attr-defined]
        self.status.show_activity(self.tr("Ready"))
        self.panel.mark_loaded(used)  # type: ignore[arg-type]
        for notice in info.notices:  # type: ignore[attr-defined]
            self.add_notice(notice)
        self.settings.last_model = str(info.path)  # type: ignore[attr-defined]
        self._save_settings()
        self._show_model()
        if not info.has_template and not used.template:  # type: ignore[attr-defined]
            self._ask_for_template(info.path)  # type: ignore[attr-defined]

    def _ask_for_template(self, path: Path) -> None:
        name = ask_for_template(path.name, self)
        if name:
            self.models.load(path, template=name)

    def _on_replying(self, replying: bool) -> None:
        self.prompt.set_replying(replying)
        if replying:
            self.status.begin_reply()
        else:
            self.status.end_reply()
            self._show_chats()

    def _on_theme(self) -> None:
        self.view.set_theme(self._themes.theme)

    def _save_settings(self) -> None:
        try:
            save(self.settings)
        except CauserieError as error:
            self.add_notice(str(error))

    def _show_error(self, error: CauserieError) -> None:
        show_error(error, self)

    def _offer_to_replace(self, path: Path, error: CauserieError) -> None:
        if confirm_replace(error, self):
            self.models.load(path, replace=True)

    def _restore_geometry(self) -> None:
        if self.settings.window_geometry:
            self.restoreGeometry(
                QByteArray.fromBase64(self.settings.window_geometry.encode("ascii", "replace"))
            )

    def closeEvent(self, event: QCloseEvent) -> None:
        """Saves what is not saved yet; the engine is ended by `run_window`, after the window is gone."""
        self.save_all()
        super().closeEvent(event)

    def save_all(self) -> None:
        self.chats.save_running_reply()
        with contextlib.suppress(CauserieError):  # nobody is there any more to be told
            self.settings.window_geometry = bytes(self.saveGeometry().toBase64().data()).decode("ascii")
            save(self.settings)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_model(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = _dropped_model(event)
        if path is not None:
            event.acceptProposedAction()
            self.load_model(path)


def _dropped_model(event: QDropEvent) -> Path | None:
    """The first .gguf file among what is dragged."""
    for url in event.mimeData().urls():
        if url.isLocalFile() and url.toLocalFile().lower().endswith(".gguf"):
            return Path(url.toLocalFile())
    return None
