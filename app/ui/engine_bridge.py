"""The one place where the engine's thread meets Qt: worker events become signals of the GUI thread.

The worker calls `_on_event` in its own thread; that only puts the event into a queue and wakes the GUI
thread by a queued signal.  Nothing else in the window knows of threads in the engine.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot

from engine.errors import CauserieError
from engine.requests import (
    ChatRequest,
    ContextTrimmed,
    Finished,
    GenerationRecord,
    LoadSettings,
    PromptProgress,
    TextPiece,
)

if TYPE_CHECKING:
    from engine.events import Event, ModelInfo
    from engine.worker import Worker

log = logging.getLogger(__name__)

DRAIN_SECONDS = 0.008
"""The longest the window gives to events at a time before it looks after the person again."""

WorkerFactory = Callable[[Callable[["Event"], None]], "Worker"]


def make_worker(on_event: Callable[[Event], None]) -> Worker:
    from engine.worker import Worker  # numpy and the kernels load here, not before the window is up

    return Worker(on_event)


class EngineBridge(QObject):
    """One load and one reply at a time. Every load and every reply ends with exactly one signal.

    load: load_progress*, then loaded, load_cancelled or load_failed.
    reply: prompt_progress*, text*, then finished, reply_failed or reply_cancelled.
    """

    load_progress = Signal(float)
    loaded = Signal(object)
    load_cancelled = Signal()
    load_failed = Signal(object)
    trimmed = Signal(int)
    prompt_progress = Signal(int, int)
    text = Signal(str)
    finished = Signal(object)
    reply_failed = Signal(object)
    reply_cancelled = Signal()

    _wake = Signal()
    _started = Signal()

    def __init__(self, factory: WorkerFactory = make_worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self._worker: Worker | None = None
        self._start_error: CauserieError | None = None
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._wake_sent = False
        self._waiting_load: Callable[[Worker], None] | None = None
        self._waiting_chat: Callable[[Worker], None] | None = None
        self._load_id: int | None = None
        self._reply_id: int | None = None
        self._starter: threading.Thread | None = None
        self.is_loading = False
        self.is_replying = False
        self.info: ModelInfo | None = None
        self._wake.connect(self._drain, Qt.ConnectionType.QueuedConnection)
        self._started.connect(self._on_started, Qt.ConnectionType.QueuedConnection)

    def start(self) -> None:
        """Imports the engine and starts its thread, without keeping the window waiting."""
        if self._starter is None:
            self._starter = threading.Thread(target=self._start, name="engine-start", daemon=True)
            self._starter.start()

    def load(self, path: Path, settings: LoadSettings, replace: bool = False) -> None:
        """Loads a model; one that is loading already is cancelled.

        replace: close the old model first; without it the old one stays where the new one fails.
        """
        self.cancel_load()
        self.is_loading = True

        def submit(worker: Worker) -> None:
            if replace:
                worker.unload()
            self._load_id = worker.load(path, settings)

        self._waiting_load = submit
        self._submit_waiting()

    def cancel_load(self) -> None:
        if self._worker is not None and self._load_id is not None:
            self._worker.cancel(self._load_id)
        elif self._waiting_load is not None:
            self._waiting_load = None
            self.is_loading = False
            self.load_cancelled.emit()

    def chat(self, request: ChatRequest) -> None:
        """Asks for a reply. Only while none is running."""
        assert not self.is_replying
        self.is_replying = True

        def submit(worker: Worker) -> None:
            self._reply_id = worker.chat(request)

        self._waiting_chat = submit
        self._submit_waiting()

    def stop(self) -> None:
        """Ends the running reply within one token."""
        if self._worker is not None and self._reply_id is not None:
            self._worker.cancel(self._reply_id)
        elif self._waiting_chat is not None:
            self._waiting_chat = None
            self.is_replying = False
            self.reply_cancelled.emit()

    def shutdown(self, timeout: float) -> bool:
        """Ends the engine's thread; whether it ended in time. Its events are heard no more."""
        self._waiting_load = self._waiting_chat = None
        deadline = time.monotonic() + timeout
        if self._starter is not None:
            self._starter.join(timeout)
        if self._worker is None:
            return self._starter is None or not self._starter.is_alive()
        ended = self._worker.shutdown(max(0.0, deadline - time.monotonic()))
        self._load_id = self._reply_id = None
        self.is_loading = self.is_replying = False
        return ended

    def _submit_waiting(self) -> None:
        """Hands over what waits for the worker, which may not have started yet."""
        self.start()
        if self._worker is None:
            if self._start_error is not None:
                self._fail(self._start_error)
            return
        load, self._waiting_load = self._waiting_load, None
        chat, self._waiting_chat = self._waiting_chat, None
        for submit in (load, chat):
            if submit is not None:
                submit(self._worker)

    def _fail(self, error: CauserieError) -> None:
        self._waiting_load = self._waiting_chat = None
        if self.is_loading:
            self.is_loading = False
            self.load_failed.emit(error)
        if self.is_replying:
            self.is_replying = False
            self.reply_failed.emit(error)

    def _start(self) -> None:
        """Runs in a thread of its own."""
        try:
            self._worker = self._factory(self._on_event)
        except CauserieError as error:
            self._start_error = error
        except Exception as error:  # the border: a broken installation must not end in silence
            log.warning("the engine could not start: %r", error)
            self._start_error = CauserieError(
                f"The engine could not start: {error}", "Install Causerie again."
            )
        self._started.emit()

    @Slot()
    def _on_started(self) -> None:
        self._submit_waiting()

    def _on_event(self, event: Event) -> None:
        """Runs in the worker's thread."""
        self._events.put(event)
        if not self._wake_sent:
            self._wake_sent = True
            self._wake.emit()

    @Slot()
    def _drain(self) -> None:
        self._wake_sent = False
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            self._dispatch(event)
        self._wake_sent = True
        self._wake.emit()

    def _dispatch(self, event: Event) -> None:
        from engine.events import Failed, GenerationEvent, Loaded, LoadProgress, RequestCancelled, Unloaded

        if event.request_id == self._load_id:
            match event:
                case LoadProgress(share=share):
                    self.load_progress.emit(share)
                    return
                case Loaded(info=info):
                    self.info = info
            self._load_id = None
            self.is_loading = False
            match event:
                case Loaded():
                    self.loaded.emit(self.info)
                case RequestCancelled():
                    self.load_cancelled.emit()
                case Failed(error=error):
                    self.load_failed.emit(error)
        elif event.request_id == self._reply_id:
            match event:
                case GenerationEvent(record=record):
                    self._on_record(record)
                case Failed(error=error):
                    self._end_reply()
                    self.reply_failed.emit(error)
                case RequestCancelled():
                    self._end_reply()
                    self.reply_cancelled.emit()
        elif isinstance(event, Loaded):
            self.info = event.info  # a load that ended just before it was replaced
        elif isinstance(event, Unloaded):
            self.info = None

    def _on_record(self, record: GenerationRecord) -> None:
        match record:
            case TextPiece(text=text):
                self.text.emit(text)
            case PromptProgress(done=done, total=total):
                self.prompt_progress.emit(done, total)
            case ContextTrimmed(dropped_messages=count):
                self.trimmed.emit(count)
            case Finished():
                self._end_reply()
                self.finished.emit(record)

    def _end_reply(self) -> None:
        self._reply_id = None
        self.is_replying = False
