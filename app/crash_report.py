"""Writes down what nobody foresaw, and turns it into an error a person can act upon."""

from __future__ import annotations

import platform
import sys
import time
import traceback

import app
from app import paths
from engine.errors import CauserieError


class UnforeseenError(CauserieError):
    """A fault of the program itself."""


def write(error: BaseException) -> UnforeseenError:
    """Saves versions and traceback in the log folder; returns the error to show.  Never raises."""
    report = paths.log_folder() / f"crash-{time.strftime('%Y%m%d-%H%M%S')}.txt"
    text = "".join(
        [
            f"Causerie {app.__version__}, Python {sys.version.split()[0]}, {platform.platform()}\n\n",
            *traceback.format_exception(error),
        ]
    )
    title = f"Something went wrong that nobody foresaw ({type(error).__name__})."
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        return UnforeseenError(title, "Try again; the details could not be saved.")
    return UnforeseenError(title, f"Please report it with the details in {report}.")
