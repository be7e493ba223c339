"""The log of the app: warnings and errors of all parts, in one small file of the log folder."""

from __future__ import annotations

import logging
import logging.handlers

from app import paths


def start() -> None:
    """Sends the log to its file; where that cannot be written there is no log, and nobody is disturbed."""
    root = logging.getLogger()
    if any(isinstance(handler, logging.handlers.RotatingFileHandler) for handler in root.handlers):
        return
    handler: logging.Handler
    try:
        paths.log_folder().mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            paths.log_folder() / "causerie.log",
            maxBytes=1 << 20,
            backupCount=2,
            encoding="utf-8",
            delay=True,
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    root.addHandler(handler)
    logging.raiseExceptions = False  # a full disk is no reason to print into a conversation
