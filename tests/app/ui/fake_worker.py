"""A worker without an engine: the same methods and events, the same thread, texts from a script."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from engine.errors import CauserieError, ModelFileError, NoRoomBesideError, OutOfMemoryError
from engine.events import (
    Event,
    Failed,
    GenerationEvent,
    Loaded,
    LoadProgress,
    ModelInfo,
    RequestCancelled,
    Unloaded,
)
from engine.requests import ChatRequest, Finished, LoadSettings, PromptProgress, TextPiece, Timings


class FakeWorker:
    """pieces: what each reply says; pause: seconds before each piece and load step.

    A path with "bad" in its name cannot be loaded, one with "large" only while nothing else is loaded.  One
    with "base" has no chat template unless the settings name one.
    requests: what was asked for, in order.
    """

    def __init__(
        self,
        on_event: Callable[[Event], None],
        pieces: Sequence[str] = ("Hello", " there", "."),
        pause: float = 0.0,
        failure: CauserieError | None = None,
    ) -> None:
        self.on_event = on_event
        self.pieces = list(pieces)
        self.pause = pause
        self.failure = failure
        self.requests: list[Any] = []
        self.threads: list[threading.Thread] = []
        self.cancelled: set[int] = set()
        self.last_id = 0
        self.was_shut_down = False
        self.loaded = 0

    def load(
        self, path: str | os.PathLike[str], settings: LoadSettings | None = None, *, replace: bool = False
    ) -> int:
        return self._start(self._load, Path(path), settings or LoadSettings())

    def unload(self) -> int:
        self.last_id += 1
        self.requests.append("unload")
        self.loaded = 0
        self.on_event(Unloaded(self.last_id))
        return self.last_id

    def chat(self, request: ChatRequest) -> int:
        return self._start(self._chat, request)

    def cancel(self, request_id: int) -> None:
        self.cancelled.add(request_id)

    def shutdown(self, timeout: float = 5.0) -> bool:
        self.was_shut_down = True
        self.cancelled |= set(range(self.last_id + 1))
        for thread in self.threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in self.threads)

    def _start(self, work: Callable[..., None], *arguments: Any) -> int:
        self.last_id += 1
        self.requests.append(arguments[0])
        thread = threading.Thread(target=work, args=(self.last_id, *arguments), daemon=True)
        self.threads.append(thread)
        thread.start()
        return self.last_id

    def _load(self, request_id: int, path: Path, settings: LoadSettings) -> None:
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            if request_id in self.cancelled:
                self.on_event(RequestCancelled(request_id))
                return
            self.on_event(LoadProgress(request_id, share))
            time.sleep(self.pause)
        if "bad" in path.name:
            self.on_event(Failed(request_id, ModelFileError(f"{path.name} is no model.")))
            return
        if "huge" in path.name:
            self.on_event(Failed(request_id, OutOfMemoryError("It needs 9 TB.")))
            return
        if "large" in path.name and self.loaded:
            self.on_event(Failed(request_id, NoRoomBesideError("It does not fit beside the loaded one.")))
            return
        self.loaded += 1
        context_size = settings.context_size or 4096
        has_template = "base" not in path.name or bool(settings.template)
        info = ModelInfo(path, cast(Any, None), context_size, 1000, has_template, ())
        self.on_event(Loaded(request_id, info))

    def _chat(self, request_id: int, request: ChatRequest) -> None:
        started = time.monotonic()
        self.on_event(GenerationEvent(request_id, PromptProgress(20, 20, 0)))
        said: list[str] = []
        reason = "stop"
        for token, piece in enumerate(self.pieces):
            time.sleep(self.pause)
            if request_id in self.cancelled:
                reason = "cancelled"
                break
            said.append(piece)
            self.on_event(GenerationEvent(request_id, TextPiece(piece, token, -0.1)))
        if self.failure is not None:
            self.on_event(Failed(request_id, self.failure))
            return
        timings = Timings(20, 0, len(said), 0.1, max(time.monotonic() - started, 1e-3), 20 + len(said))
        ids = tuple(range(len(said)))
        record = Finished(cast(Any, reason), "".join(said), ids, "", timings)
        self.on_event(GenerationEvent(request_id, record))
