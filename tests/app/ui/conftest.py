"""The window with a fake worker, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import paths
from app.chats.store import ChatStore, open_store
from app.settings import Settings
from app.ui.engine_bridge import EngineBridge
from app.ui.main_window import MainWindow
from app.ui.theme import ThemeKeeper
from tests.app.ui.fake_worker import FakeWorker


@pytest.fixture(scope="session")
def themes(qapp: QApplication) -> ThemeKeeper:
    qapp.setStyle("Fusion")
    return ThemeKeeper(qapp)


@pytest.fixture
def store(causerie_home: Path) -> Iterator[ChatStore]:
    opened, notice = open_store(paths.chats_file())
    assert notice == ""
    yield opened
    opened.close()


@dataclass
class Bench:
    """A shown window, its fake worker, and the errors it wanted to show."""

    window: MainWindow
    worker: FakeWorker
    errors: list[Any] = field(default_factory=list)

    def send(self, text: str) -> None:
        self.window.prompt.set_text(text)
        self.window.prompt.edit.submitted.emit()

    def shown(self) -> str:
        return self.window.view.toPlainText()


@pytest.fixture
def open_bench(
    qtbot: QtBot, store: ChatStore, themes: ThemeKeeper, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Bench]]:
    """Opens a window; keywords are those of `FakeWorker`, and model=False loads none."""
    opened: list[MainWindow] = []

    def open_it(model: bool = True, **keywords: Any) -> Bench:
        made: list[FakeWorker] = []

        def factory(on_event: Any) -> Any:
            made.append(FakeWorker(on_event, **keywords))
            return made[0]

        errors: list[Any] = []
        monkeypatch.setattr("app.ui.main_window.show_error", lambda error, _parent: errors.append(error))
        window = MainWindow(store, Settings(), themes, EngineBridge(factory))
        opened.append(window)
        qtbot.addWidget(window)
        window.show()
        window.bridge.start()
        qtbot.waitUntil(lambda: bool(made))
        if model:
            window.load_model(Path("model.gguf"))
            qtbot.waitUntil(lambda: window.bridge.info is not None)
        return Bench(window, made[0], errors)

    yield open_it
    for window in opened:
        window.chats.save_running_reply()
        assert window.bridge.shutdown(5.0)


@pytest.fixture
def bench(open_bench: Callable[..., Bench]) -> Bench:
    return open_bench()
