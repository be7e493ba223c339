"""What a program that we start for a person, such as the browser for a link, must not inherit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from app import paths

LIBRARIES = "LD_LIBRARY_PATH"
LIBRARIES_BEFORE = "LD_LIBRARY_PATH_ORIG"


@contextlib.contextmanager
def system_libraries() -> Iterator[None]:
    """Programs started inside the block find the system's libraries.

    The single file points the linker at the libraries it has unpacked.  Our own child processes need that;
    a browser would load Qt or libstdc++ of another version than its own, and fail.
    """
    unpacked = os.environ.get(LIBRARIES)
    if not paths.is_frozen() or unpacked is None:
        yield
        return
    before = os.environ.get(LIBRARIES_BEFORE)
    if before is None:
        del os.environ[LIBRARIES]
    else:
        os.environ[LIBRARIES] = before
    try:
        yield
    finally:
        os.environ[LIBRARIES] = unpacked
