"""Where the app keeps things: settings, chats, models, logs, and the resources it ships with.

Folders follow the system's customs.  ``CAUSERIE_HOME`` puts all of them below one folder, for tests and for
a copy carried on a stick.  Nothing here creates a folder: whoever writes into one does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs

APP_NAME = "Causerie"
HOME_VARIABLE = "CAUSERIE_HOME"


def _home() -> Path | None:
    chosen = os.environ.get(HOME_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else None


def config_folder() -> Path:
    """Settings."""
    home = _home()
    return home / "config" if home else platformdirs.user_config_path(APP_NAME, appauthor=False)


def data_folder() -> Path:
    """What a person would miss: chats and models."""
    home = _home()
    return home / "data" if home else platformdirs.user_data_path(APP_NAME, appauthor=False)


def cache_folder() -> Path:
    """What can be made again."""
    home = _home()
    return home / "cache" if home else platformdirs.user_cache_path(APP_NAME, appauthor=False)


def log_folder() -> Path:
    """Logs and crash reports."""
    home = _home()
    return home / "log" if home else platformdirs.user_log_path(APP_NAME, appauthor=False)


def settings_file() -> Path:
    return config_folder() / "settings.json"


def chats_file() -> Path:
    return data_folder() / "chats.sqlite"


def window_lock_file() -> Path:
    """Held by the first window that has the chats open."""
    return data_folder() / "window.lock"


def models_folder() -> Path:
    """The model folder: downloads go here, and what lies here is offered."""
    return data_folder() / "models"


def history_file() -> Path:
    """Lines typed into `causerie chat`."""
    return data_folder() / "history.txt"


def is_frozen() -> bool:
    """Whether this is the packaged single file."""
    return bool(getattr(sys, "frozen", False))


def resources_folder() -> Path:
    """Files shipped with the app, read-only: beside the source, or unpacked by the single file."""
    unpacked = getattr(sys, "_MEIPASS", None)
    return (Path(unpacked) if unpacked else Path(__file__).parent.parent) / "resources"
