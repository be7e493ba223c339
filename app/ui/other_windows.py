"""Whether another Causerie window has the same chats open, so that its running reply is left alone."""

from __future__ import annotations

import contextlib
from pathlib import Path

from PySide6.QtCore import QLockFile


class WindowLock:
    """Held while a window is open.  ``is_first``: no other window of this data folder was open before.

    A window that was killed counts as closed: the lock holds the process's id.  Where no lock can be made
    (a folder that may not be written to), the window counts as the first: nothing is shared there.
    """

    def __init__(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = QLockFile(str(path))
        self._lock.setStaleLockTime(0)  # only the death of its process ends a lock, not its age
        if not self._lock.tryLock(0) and not any(self._lock.getLockInfo()):
            self._lock.removeStaleLockFile()  # damaged: it names no process that could hold it
            self._lock.tryLock(0)
        self.is_first = self._lock.error() != QLockFile.LockError.LockFailedError

    def release(self) -> None:
        self._lock.unlock()
