"""Which Qt this is and what it draws on, for `--selftest`."""

from __future__ import annotations

import PySide6
from PySide6.QtCore import qVersion
from PySide6.QtWidgets import QApplication


def qt_facts() -> str:
    """Starts Qt in this process.  Where no platform can be had, Qt ends the process."""
    application = QApplication(["causerie"])
    platform = application.platformName()
    return f"Qt {qVersion()}, PySide6 {PySide6.__version__}, platform {platform}"
