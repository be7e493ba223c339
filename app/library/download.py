"""Fetches a known model into the model folder: sources in order, checksum pinned, cancel at once.

Every source works in a process of its own that only writes below the work folder it is given.  So progress is
the size of that folder, whatever library does the work, and Cancel ends the process without waiting for its
retries.  The file gets its name in the model folder only when it is whole and its checksum is right.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import DownloadError
from app.library import sources
from app.library.known_models import KnownModel, Source
from engine.errors import Cancelled

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
SPARE_BYTES = 64 << 20
"""Left free on the disk after a download."""


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """done of total bytes are here, from the source named; seconds_left is None while it is unknown.

    failures: one sentence for each source that was tried before in vain.
    """

    source: str
    done: int
    total: int
    seconds_left: float | None
    failures: tuple[str, ...] = ()


OnProgress = Callable[[DownloadProgress], None]
ShouldStop = Callable[[], bool]


def never() -> bool:
    return False


def ignore(progress: DownloadProgress) -> None:
    pass


def is_complete(model: KnownModel, path: Path) -> bool:
    """Whether the file is there, whole and right (its checksum is computed)."""
    try:
        if not path.is_file() or path.stat().st_size != model.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except OSError:
        return False


def fetch(
    model: KnownModel, folder: Path, on_progress: OnProgress = ignore, should_stop: ShouldStop = never
) -> Path:
    """The path of the model in the folder, downloaded unless it is there already.

    on_progress is called some times a second.  should_stop is asked as often; when it says yes, `Cancelled`
    is raised within a fifth of a second and what came so far is kept for the next time where the source can
    resume.  Raises `DownloadError` naming what went wrong with each source.
    """
    path = folder / model.file_name
    if is_complete(model, path):
        return path
    failures: list[str] = []
    work = folder / ".partial" / model.sha256[:16]
    for source in sources.in_order(model.sources):
        try:
            _make_room(work, model, source)
            _run(source, work, failures, on_progress, should_stop)
            _finish(model, source, work, path)
            return path
        except DownloadError as error:
            log.warning("download from %s failed: %s", source.label, error.title)
            failures.append(f"{source.label}: {error.title}")
        except OSError as error:
            failures.append(f"{source.label}: {error.strerror or error!r}.")
    raise DownloadError(f"{model.title} could not be fetched. " + " ".join(_capitalised(failures)))


def _capitalised(sentences: list[str]) -> list[str]:
    return [sentence[:1].upper() + sentence[1:] for sentence in sentences]


def _make_room(work: Path, model: KnownModel, source: Source) -> None:
    try:
        work.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(work).free
    except OSError as error:
        raise DownloadError(f"the model folder cannot be written to ({error.strerror}).") from error
    needed = model.size + source.download_size + SPARE_BYTES - folder_size(work)
    if free < needed:
        raise DownloadError(f"{needed >> 20} MiB of disk are needed, {free >> 20} MiB are free.")


def _run(
    source: Source, work: Path, failures: list[str], on_progress: OnProgress, should_stop: ShouldStop
) -> None:
    started = time.monotonic()
    at_start = folder_size(work)
    with sources.start(source, work) as running:
        while True:
            done = folder_size(work)
            if should_stop():
                raise Cancelled("The download was cancelled.")
            if done > source.download_size * 1.25 + SPARE_BYTES:
                raise DownloadError("it sent more than the model's size.")
            speed = (done - at_start) / max(time.monotonic() - started, 1e-9)
            left = (source.download_size - done) / speed if speed > 0 else None
            shown = min(done, source.download_size)
            on_progress(
                DownloadProgress(
                    source.label, shown, source.download_size, left and max(left, 0.0), tuple(failures)
                )
            )
            if running.wait(POLL_SECONDS):
                break
        running.raise_if_failed()


def _finish(model: KnownModel, source: Source, work: Path, path: Path) -> None:
    """Checks what came and gives it its name."""
    whole = work / "whole.gguf"
    sources.take_out(source, work, whole, model.size)
    if not is_complete(model, whole):
        shutil.rmtree(work, ignore_errors=True)
        raise DownloadError("the file that came is not the one expected (its checksum differs).")
    os.replace(whole, path)
    shutil.rmtree(work, ignore_errors=True)
    with contextlib.suppress(OSError):
        work.parent.rmdir()  # unless another download is under way


def folder_size(folder: Path) -> int:
    """Bytes of all files below the folder; files that vanish meanwhile do not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_size
    return total
