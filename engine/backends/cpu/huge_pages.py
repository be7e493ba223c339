"""Huge pages for weights: not while they are loaded, but soon after.

Reading weights goes a quarter faster over huge pages.  Filling them for the first time may take much longer
than filling small ones, where the machine is virtual and its host must find the memory.  So weights are
loaded into small pages, and a thread in the background has the system move them, one huge page at a time.
See docs/decisions/0010-memory-of-weights.md.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache

import numpy as np
from numpy.typing import NDArray

# From Linux' <linux/mman.h>; the last is known since Linux 6.1.
_MADV_HUGEPAGE, _MADV_NOHUGEPAGE, _MADV_COLLAPSE = 14, 15, 25

HUGE_PAGE = 2 << 20
"""Bytes on x86-64, and on arm64 with pages of 4 kB.  Where huge pages are larger, the system declines."""


def avoid_huge_pages(memory: NDArray[np.uint8]) -> None:
    """Untouched memory will be filled with small pages, where the system has a choice."""
    _advise(*_whole_pages(memory), _MADV_NOHUGEPAGE)


DELAY = 0.5
"""Seconds from loading to the first move: a first answer is waited for, and has the memory to itself."""


class HugePages:
    """A thread that moves memory to huge pages.  Its content stays as it is, and readable all the time."""

    def __init__(self, memory: NDArray[np.uint8], delay: float = DELAY) -> None:
        """delay: seconds until it begins."""
        self._memory = memory
        self._delay = delay
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._move, name="causerie-huge-pages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends within one page.  The memory may be freed afterwards."""
        self._stopped.set()
        self._thread.join()

    def wait(self) -> None:
        """Until everything is moved that can be."""
        self._thread.join()

    def _move(self) -> None:
        start, length = _whole_pages(self._memory)
        if self._stopped.wait(self._delay):
            return
        if not _advise(start, length, _MADV_HUGEPAGE):
            return
        for page in range(start, start + length, HUGE_PAGE):
            if self._stopped.is_set():
                return
            _advise(page, HUGE_PAGE, _MADV_COLLAPSE)  # a page that cannot be moved now stays as it is


def _whole_pages(memory: NDArray[np.uint8]) -> tuple[int, int]:
    """Address and bytes of the huge pages that lie wholly in memory."""
    address = memory.ctypes.data
    start = -(-address // HUGE_PAGE) * HUGE_PAGE
    return start, max(0, (address + memory.nbytes - start) // HUGE_PAGE * HUGE_PAGE)


def _advise(start: int, length: int, advice: int) -> bool:
    """Whether the system took the advice about some memory."""
    if sys.platform != "linux" or length == 0:
        return False
    arguments = ctypes.c_void_p(start), ctypes.c_size_t(length), ctypes.c_int(advice)
    return bool(_c_library().madvise(*arguments) == 0)


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
