"""The worker: one thread that owns the model.  Requests go in, events come out.

    worker = Worker(on_event)
    request_id = worker.load(path)            # every request returns at once
    request_id = worker.chat(ChatRequest(...))
    worker.cancel(request_id)
    worker.shutdown()

Requests are served in order, one at a time.  ``on_event`` is called in the worker's thread and must return
soon; ``queue.SimpleQueue().put`` is the simplest.  The events, and which of them end a request, are in
`engine.events`: each request ends with exactly one terminal event.

A `Failed` reply keeps what its earlier events said.  A failed or cancelled load keeps the old model.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import BackendError, Cancelled, CauserieError, NoRoomBesideError, OutOfMemoryError
from engine.events import (
    Event,
    Failed,
    GenerationEvent,
    Loaded,
    LoadProgress,
    ModelInfo,
    RequestCancelled,
    Unloaded,
    is_terminal,
)
from engine.generation import chat, generate
from engine.requests import ChatRequest, CompletionRequest, LoadSettings
from engine.session import Session

if TYPE_CHECKING:
    from engine.model import LoadedModel

LoadModel = Callable[[str | os.PathLike[str], LoadSettings, Callable[[float], None]], "LoadedModel"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Load:
    path: str | os.PathLike[str]
    settings: LoadSettings
    replace: bool


@dataclass(frozen=True, slots=True)
class _Unload:
    pass


_Request = _Load | _Unload | ChatRequest | CompletionRequest


class Worker:
    """Starts its thread at once.  All methods may be called from any thread; only `shutdown` waits.

    load_model: makes a model in the worker's thread; raises `CauserieError`s.
    """

    def __init__(self, on_event: Callable[[Event], None], load_model: LoadModel | None = None) -> None:
        self._on_event = on_event
        self._load_model = load_model or _load_model
        self._requests: queue.SimpleQueue[tuple[int, _Request] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._last_id = 0
        self._open_ids: set[int] = set()
        self._cancelled_ids: set[int] = set()
        self._closed = False
        self._model: LoadedModel | None = None
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._work, name="causerie-worker", daemon=True)
        self._thread.start()

    def load(
        self,
        path: str | os.PathLike[str],
        settings: LoadSettings | None = None,
        *,
        replace: bool = False,
    ) -> int:
        """Loads a model beside the old one, and drops the old one only when the new one is ready.

        Where both do not fit, it fails with `OutOfMemoryError` and keeps the old one; replace=True closes the
        old one first, so that a failure leaves no model.
        """
        return self._submit(_Load(path, settings or LoadSettings(), replace))

    def unload(self) -> int:
        """Closes the model."""
        return self._submit(_Unload())

    def chat(self, request: ChatRequest) -> int:
        """Writes a reply to a conversation."""
        return self._submit(request)

    def complete(self, request: CompletionRequest) -> int:
        """Continues a raw prompt."""
        return self._submit(request)

    def cancel(self, request_id: int) -> None:
        """Ends a request within one token, one prompt chunk or one load step; ignored once it is over."""
        with self._lock:
            if request_id in self._open_ids:
                self._cancelled_ids.add(request_id)

    def shutdown(self, timeout: float = 5.0) -> bool:
        """Cancels everything, closes the model, waits at most timeout seconds.  Whether the thread ended."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._cancelled_ids |= self._open_ids
                self._requests.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _submit(self, request: _Request) -> int:
        with self._lock:
            if self._closed:
                raise CauserieError("The engine has been shut down.", "Start the program again.")
            self._last_id += 1
            self._open_ids.add(self._last_id)
            self._requests.put((self._last_id, request))
            return self._last_id

    def _work(self) -> None:
        while (item := self._requests.get()) is not None:
            request_id, request = item
            for event in self._guarded(request_id, request):
                self._emit(event)
        self._replace_model(None, None)

    def _emit(self, event: Event) -> None:
        if is_terminal(event):
            with self._lock:
                self._open_ids.discard(event.request_id)
                self._cancelled_ids.discard(event.request_id)
        try:
            self._on_event(event)
        except Exception:
            log.exception("on_event failed for %r", type(event).__name__)

    def _is_cancelled(self, request_id: int) -> bool:
        return request_id in self._cancelled_ids

    def _guarded(self, request_id: int, request: _Request) -> Iterator[Event]:
        """The events of a request, with whatever goes wrong turned into its one terminal event."""
        if self._is_cancelled(request_id):
            yield RequestCancelled(request_id)
            return
        try:
            yield from self._serve(request_id, request)
        except Cancelled:
            yield RequestCancelled(request_id)
        except CauserieError as error:
            yield Failed(request_id, error)
        except MemoryError as error:
            log.warning("out of memory: %s", error)
            yield Failed(request_id, OutOfMemoryError("This computer ran out of memory."))
        except Exception as error:
            log.exception("request %d failed", request_id)
            yield Failed(request_id, _unexpected(error))

    def _serve(self, request_id: int, request: _Request) -> Iterator[Event]:
        match request:
            case _Load():
                yield self._load(request_id, request)
            case _Unload():
                self._replace_model(None, None)
                yield Unloaded(request_id)
            case ChatRequest():
                for record in chat(self._ready(), request, lambda: self._is_cancelled(request_id)):
                    yield GenerationEvent(request_id, record)
            case CompletionRequest():
                for record in generate(self._ready(), request, lambda: self._is_cancelled(request_id)):
                    yield GenerationEvent(request_id, record)

    def _ready(self) -> Session:
        if self._session is None:
            raise BackendError("No model is loaded.", "Choose a model first.")
        return self._session

    def _load(self, request_id: int, request: _Load) -> Loaded:
        highest = 0.0

        def on_progress(share: float) -> None:
            nonlocal highest
            if self._is_cancelled(request_id):
                raise Cancelled("Loading was cancelled.")
            highest = min(1.0, max(highest, share))
            self._emit(LoadProgress(request_id, highest))

        if request.replace:
            self._replace_model(None, None)
        try:
            model = self._load_model(request.path, request.settings, on_progress)
            session = self._new_session(model)
        except (OutOfMemoryError, MemoryError) as error:
            lacking = getattr(error, "lacking", 0)
            if self._model is None or lacking > self._model.memory.total:
                raise
            title = error.title if isinstance(error, OutOfMemoryError) else "This computer ran out of memory."
            raise NoRoomBesideError(
                f"The new model does not fit beside the loaded one. {title}", lacking=lacking
            ) from error
        if self._is_cancelled(request_id):
            session.close()
            model.close()
            raise Cancelled("Loading was cancelled.")
        self._replace_model(model, session)
        return Loaded(request_id, _info(model))

    @staticmethod
    def _new_session(model: LoadedModel) -> Session:
        try:
            return Session(model)
        except BaseException:
            model.close()
            raise

    def _replace_model(self, model: LoadedModel | None, session: Session | None) -> None:
        old_model, old_session = self._model, self._session
        self._model, self._session = model, session
        try:
            if old_session is not None:
                old_session.close()
            if old_model is not None:
                old_model.close()
        except Exception:
            log.exception("the old model could not be closed")


def _load_model(
    path: str | os.PathLike[str], settings: LoadSettings, on_progress: Callable[[float], None]
) -> LoadedModel:
    from engine.model import load_model

    return load_model(path, settings, on_progress)


def _info(model: LoadedModel) -> ModelInfo:
    return ModelInfo(
        path=Path(model.path),
        description=model.description,
        context_size=model.context_size,
        memory_bytes=model.memory.total,
        has_template=model.template is not None,
        notices=tuple(model.notices),
    )


def _unexpected(error: Exception) -> CauserieError:
    text = str(error).strip() or type(error).__name__
    return CauserieError(
        f"Something unexpected happened: {text[:500]}",
        "Try again; the log holds the details.",
    )
