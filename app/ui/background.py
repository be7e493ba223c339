"""Work of the app's own (listing models, a download) in a thread, its results in the GUI thread."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal

from engine.errors import Cancelled, CauserieError

log = logging.getLogger(__name__)


class BackgroundTask(QObject):
    """Runs `work(report, should_stop)` once. Signals come in the GUI thread; exactly one of done, failed
    and cancelled ends it.

    report: called in the thread with any value, which `progress` carries over.
    should_stop: says yes after `cancel`; the work then raises `Cancelled` or returns early.
    """

    progress = Signal(object)
    done = Signal(object)
    failed = Signal(object)
    cancelled = Signal()
    _reported = Signal(object)
    _ended = Signal(object, object)

    def __init__(
        self, work: Callable[[Callable[[Any], None], Callable[[], bool]], Any], parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._work = work
        self._stop = threading.Event()
        self._reported.connect(self._on_reported, Qt.ConnectionType.QueuedConnection)
        self._ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)
        self._thread = threading.Thread(target=self._run, name="causerie-background", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Whether the thread has ended after at most so long."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        """Runs in the thread."""
        result, error = None, None
        try:
            result = self._work(self._reported.emit, self._stop.is_set)
        except CauserieError as caught:
            error = caught
        except Exception as caught:  # the border: whatever went wrong is told, never lost
            log.warning("background work failed: %r", caught)
            error = CauserieError(f"Something unexpected happened: {caught}", "Try again.")
        with contextlib.suppress(RuntimeError):  # the window was closed meanwhile, and this object with it
            self._ended.emit(result, error)

    def _on_reported(self, value: object) -> None:
        if not self._stop.is_set():
            self.progress.emit(value)

    def _on_ended(self, result: object, error: CauserieError | None) -> None:
        if isinstance(error, Cancelled) or (self._stop.is_set() and error is None):
            self.cancelled.emit()
        elif error is not None:
            self.failed.emit(error)
        else:
            self.done.emit(result)
