"""Starts the window. The order, and why:

1. Qt's application with the theme, so that the first picture is right.
2. Settings and the chat store: small files, read at once. What is wrong with them becomes a notice.
3. The main window is made and shown, within a second. NumPy is imported just before: loading its libraries
   stops every thread for about 60 ms, which a window that is there already would feel.
4. When the event loop runs: the engine's thread is started (the rest of the engine is imported there), and
   the model is loaded: the one asked for, else the last one, else the starter where it is here.
5. At the end, by whatever way (closed, Ctrl+Q, SIGINT, SIGTERM, log-off): the running reply is saved as
   stopped, the engine's thread and downloads are ended, the store is closed. An engine that does not end
   within END_SECONDS is left behind: everything is saved by then.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication

from app import paths
from app.chats.store import ChatStore, open_in_memory, open_store
from app.settings import load as load_settings
from app.ui.dialogs import show_error
from app.ui.engine_bridge import EngineBridge, WorkerFactory, make_worker
from app.ui.main_window import MainWindow
from app.ui.other_windows import WindowLock
from app.ui.theme import ThemeKeeper
from engine.errors import CauserieError

log = logging.getLogger(__name__)

END_SECONDS = 3.0


def run_window(model_path: Path | None = None, worker_factory: WorkerFactory = make_worker) -> int:
    """Opens the window and returns its exit status when it is closed.

    model_path: the file to load at once.  worker_factory: makes the engine's worker; tests give another.
    """
    application = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(application, QApplication)
    application.setApplicationName("Causerie")
    application.setApplicationDisplayName("Causerie")
    application.setDesktopFileName("causerie")
    application.setStyle("Fusion")
    themes = ThemeKeeper(application)
    settings = load_settings()
    lock = WindowLock(paths.window_lock_file())
    chats = open_chats(lock.is_first)
    window = MainWindow(chats.store, settings, themes, EngineBridge(worker_factory))
    for text in (*settings.problems, chats.notice):
        window.add_notice(text)
    if chats.interrupted:
        window.show_last_chat()
    interrupts = _Interrupts(window)
    sys.excepthook = _ExceptionHook(window)
    application.commitDataRequest.connect(window.save_all)
    with contextlib.suppress(ImportError):  # told by the bridge when it starts the engine
        importlib.import_module("numpy")
    window.show()
    QTimer.singleShot(0, window, lambda: _begin(window, model_path))
    status = application.exec()

    window.save_all()
    ended = window.models.shutdown(END_SECONDS / 2)
    ended = window.bridge.shutdown(END_SECONDS) and ended
    chats.store.close()
    lock.release()
    interrupts.close()
    sys.excepthook = sys.__excepthook__
    if not ended:
        log.warning("the engine did not end in time")
        logging.shutdown()
        os._exit(status)  # a thread that hangs in a driver or a dead disk must not keep the program
    window.deleteLater()
    return status


@dataclass(frozen=True, slots=True)
class OpenedChats:
    """interrupted: replies that were being written when the program died the last time."""

    store: ChatStore
    notice: str
    interrupted: int


def open_chats(is_first_window: bool = True) -> OpenedChats:
    """The chat store; one in memory where the file cannot be used.

    An unfinished reply was cut off by a crash, unless another window is open that may be writing it.
    """
    try:
        store, notice = open_store(paths.chats_file())
        interrupted = store.mark_interrupted() if is_first_window else 0
    except CauserieError as error:
        return OpenedChats(open_in_memory(), f"{error} Chats of this session will not be kept.", 0)
    if interrupted:
        notice = f"{notice} Causerie ended unexpectedly; what it had written by then is kept.".strip()
    return OpenedChats(store, notice, interrupted)


def first_model(asked: Path | None, last: str) -> Path | None:
    """What to load at the start."""
    if asked is not None:
        return asked
    if last and os.path.isfile(last):
        return Path(last)
    from app.library.starter import starter_is_here, starter_path

    return starter_path() if starter_is_here() else None


def _begin(window: MainWindow, asked: Path | None) -> None:
    window.bridge.start()
    try:
        model = first_model(asked, window.settings.last_model)
    except CauserieError as error:
        window.add_notice(str(error))
        return
    if model is not None:
        window.load_model(model)


class _Interrupts(QObject):
    """SIGINT and SIGTERM close the window: Python's handlers alone would wait for the next event."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._writer.fileno())
        self._before = {
            number: signal.signal(number, self._ignore) for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_signal)

    def close(self) -> None:
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before_fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()

    @staticmethod
    def _ignore(_number: int, _frame: object) -> None:
        """The wake-up socket tells."""

    def _on_signal(self) -> None:
        self._reader.recv(64)
        self._window.close()
        QApplication.exit(0)  # also where a dialog is open


class _ExceptionHook:
    """A fault of ours in a slot: into the log, and a sentence for the person instead of a traceback."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.error("unexpected error", exc_info=(kind, error, trace))
        if not isinstance(error, CauserieError):
            error = CauserieError(
                f"Something unexpected happened: {kind.__name__}: {error}",
                "Go on if you can; the log holds the details.",
            )
        show_error(error, self._window)
