"""The window answers while the engine works: a timer of 10 ms never waits long.

The worker, the session, the tokenizer and the template are the real ones; the backend is the fake one, so
that the engine is busy in Python, which is harder on the window than kernels that let the GIL go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np  # noqa: F401 - `run_window` has imported it before a window is shown
import pytest
from PySide6.QtCore import QObject, Qt, QTimer
from pytestqt.qtbot import QtBot

from app.chats.store import ChatStore
from app.settings import Settings
from app.ui.engine_bridge import EngineBridge
from app.ui.main_window import MainWindow
from app.ui.theme import ThemeKeeper
from engine.requests import LoadSettings

LIMIT = 0.05
"""Seconds, as promised."""
ALLOWED_LATE = 0.01
"""Share of the ticks that may be later, up to LATEST: other programs use the test machine's cores too."""
LATEST = 0.25


class Heartbeat(QObject):
    """gaps: seconds between one tick and the next."""

    def __init__(self) -> None:
        super().__init__()
        self.gaps: list[float] = []
        self._last = 0.0
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(10)
        self._timer.timeout.connect(self._tick)

    def start(self) -> None:
        self._last = time.monotonic()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def _tick(self) -> None:
        now = time.monotonic()
        self.gaps.append(now - self._last)
        self._last = now


@pytest.fixture
def window(qtbot: QtBot, store: ChatStore, themes: ThemeKeeper) -> Iterator[MainWindow]:
    made = MainWindow(store, Settings(max_tokens=300), themes, EngineBridge())
    made.models._load_settings = lambda: LoadSettings(backend="fake")
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.chats.save_running_reply()
    assert made.bridge.shutdown(10.0)


def test_the_window_answers_while_a_model_loads_reads_and_writes(
    qtbot: QtBot, window: MainWindow, smollm2_path: Path
) -> None:
    heart = Heartbeat()
    heart.start()
    window.load_model(smollm2_path)
    qtbot.waitUntil(lambda: window.bridge.info is not None, timeout=60_000)
    loading = len(heart.gaps)
    window.chats.send("A question. " * 200)
    qtbot.waitUntil(lambda: not window.chats.is_replying, timeout=60_000)
    heart.stop()
    assert loading > 5
    assert len(heart.gaps) - loading > 5
    late = [round(gap, 3) for gap in heart.gaps if gap > LIMIT]
    assert len(late) <= max(2, ALLOWED_LATE * len(heart.gaps)), late
    assert max(heart.gaps) < LATEST
