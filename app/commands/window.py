"""Opens the window, or says why it cannot."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app.errors import WindowError


def has_display() -> bool:
    """Whether Qt can be expected to find a display; without one it would end the process."""
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def open_window(model: Path | None) -> int:
    """Runs the window until it is closed; returns the exit status.  Raises `WindowError`."""
    if sys.platform == "linux" and not has_display():
        raise WindowError("There is no display to open a window on.")
    try:
        from app.ui.application import run_window
    except ImportError as error:
        raise WindowError(f"The window's library Qt could not be loaded: {error}.") from error
    return run_window(model)
