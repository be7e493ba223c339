"""The starter model: the one a person can have at once, named so in the catalogue."""

from __future__ import annotations

from pathlib import Path

from app import paths
from app.library import download
from app.library.known_models import STARTER, KnownModel, known_model


def starter() -> KnownModel:
    return known_model(STARTER)


def starter_path() -> Path:
    """Where the starter lies or would lie."""
    return paths.models_folder() / starter().file_name


def starter_is_here() -> bool:
    """Whether a file of its name and size is in the model folder; its checksum was checked when it came."""
    model = starter()
    try:
        return starter_path().stat().st_size == model.size
    except OSError:
        return False


def get_starter(
    on_progress: download.OnProgress = download.ignore, should_stop: download.ShouldStop = download.never
) -> Path:
    """Fetches the starter unless it is there and right.  Raises `DownloadError` and `Cancelled`."""
    return download.fetch(starter(), paths.models_folder(), on_progress, should_stop)
