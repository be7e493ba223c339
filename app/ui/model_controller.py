"""What happens to models: load, cancel, a bad file, fetch the starter.  The one owner of the work bar."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from app import paths
from app.library.known_models import STARTER, known_model
from app.ui.background import BackgroundTask
from app.ui.engine_bridge import EngineBridge
from app.ui.work_bar import WorkBar
from engine.errors import CauserieError, NoRoomBesideError
from engine.memory import readable_bytes
from engine.requests import LoadSettings

log = logging.getLogger(__name__)

Fetch = Callable[[Callable[[Any], None], Callable[[], bool]], Path]


def fetch_starter(report: Callable[[Any], None], should_stop: Callable[[], bool]) -> Path:
    from app.library.starter import get_starter

    return get_starter(report, should_stop)


def missing_starter_size() -> str:
    """The size of the starter model as text; "" where it is here already or not known."""
    try:
        starter = known_model(STARTER)
    except CauserieError as error:
        log.warning("the starter model is not known: %s", error)
        return ""
    return "" if os.path.exists(paths.models_folder() / starter.file_name) else readable_bytes(starter.size)


class ModelController(QObject):
    """Its signals.

    ready: a `ModelInfo` and the settings it was loaded with.
    failed: an error to show; the old model stays.
    no_room: path and error of a model that does not fit beside the old one.
    changed: what is loaded, or whether something is loading, has changed.
    """

    ready = Signal(object, object)
    no_room = Signal(object, object)
    failed = Signal(object)
    changed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        bar: WorkBar,
        load_settings: Callable[[], LoadSettings],
        fetch: Fetch = fetch_starter,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._bridge = bridge
        self._bar = bar
        self._load_settings = load_settings
        self._fetch = fetch
        self._path: Path | None = None
        self._next: Path | None = None
        self._used = LoadSettings()
        self._fetching: BackgroundTask | None = None
        bar.cancelled.connect(self.cancel)
        bridge.load_progress.connect(self._on_progress)
        bridge.loaded.connect(self._on_loaded)
        bridge.load_failed.connect(self._on_failed)
        bridge.load_cancelled.connect(self._on_cancelled)

    @property
    def is_busy(self) -> bool:
        return self._bridge.is_loading or self._fetching is not None

    def load(self, path: Path, replace: bool = False, template: str = "") -> None:
        """Loads a file, after the load before it has ended where there is one.

        replace: close the old model first, to make room.  template: as of `LoadSettings`.
        """
        if self._bridge.is_loading:
            self._next = path
            self._bridge.cancel_load()
            return
        self._path = path
        self._on_progress(0.0)
        try:
            self._used = dataclasses.replace(self._load_settings(), template=template)
            self._bridge.load(path, self._used, replace)
        except CauserieError as error:
            self._end()
            self.failed.emit(error)
        self.changed.emit()

    def reload(self) -> None:
        """Loads the model again with the settings of now."""
        if self._bridge.info is not None:
            self.load(self._bridge.info.path, template=self._used.template)

    def get_starter(self) -> None:
        """Fetches the starter, then loads it."""
        if self._fetching is not None:
            return
        self._fetching = BackgroundTask(self._fetch, self)
        self._fetching.progress.connect(self._on_fetch_progress)
        self._fetching.done.connect(self._on_fetched)
        self._fetching.failed.connect(self._on_fetch_failed)
        self._fetching.cancelled.connect(self._on_fetch_cancelled)
        self._bar.show_progress(self.tr("Fetching the starter model…"), 0.0)
        self._fetching.start()
        self.changed.emit()

    def cancel(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
        self._next = None
        self._bridge.cancel_load()

    def shutdown(self, seconds: float) -> bool:
        """Ends a download; whether its thread ended in time."""
        if self._fetching is None:
            return True
        self._fetching.cancel()
        return self._fetching.wait(seconds)

    def _on_progress(self, share: float) -> None:
        name = self._path.name if self._path is not None else ""
        text = self.tr("Loading {name}: {share} %")
        self._bar.show_progress(text.format(name=name, share=int(100 * share)), share)

    def _on_loaded(self, info: object) -> None:
        self._end()
        self.ready.emit(info, self._used)

    def _on_failed(self, error: CauserieError) -> None:
        path = self._path
        self._end()
        if isinstance(error, NoRoomBesideError) and self._bridge.info is not None:
            self.no_room.emit(path, error)
        else:
            self.failed.emit(error)

    def _on_cancelled(self) -> None:
        self._end()

    def _end(self) -> None:
        self._path = None
        self._bar.setVisible(self._fetching is not None)
        self.changed.emit()
        following, self._next = self._next, None
        if following is not None:
            self.load(following)

    def _on_fetch_progress(self, progress: Any) -> None:
        share = progress.done / progress.total if progress.total else 0.0
        text = self.tr("Fetching the starter model: {share} %").format(share=int(100 * share))
        if progress.seconds_left is not None:
            text += self.tr(", {seconds} s left").format(seconds=int(progress.seconds_left))
        self._bar.show_progress(text, share)

    def _on_fetched(self, path: Path) -> None:
        self._end_fetching()
        self.load(path)

    def _on_fetch_failed(self, error: CauserieError) -> None:
        self._end_fetching()
        self.failed.emit(error)

    def _on_fetch_cancelled(self) -> None:
        self._end_fetching()

    def _end_fetching(self) -> None:
        self._fetching = None
        self._bar.setVisible(self._bridge.is_loading)
        self.changed.emit()
