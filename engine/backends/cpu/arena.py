"""Aligned memory, and one allocation cut into parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.graph.plan import ALIGNMENT


def aligned(nbytes: int) -> int:
    """nbytes rounded up to whole cache lines."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def aligned_memory(nbytes: int) -> NDArray[np.uint8]:
    """uint8[nbytes], 64-byte aligned, not yet touched.  For more than 4 MB NumPy asks for huge pages."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


class Arena:
    """One allocation for all matrices, given back to the system as a whole.

    memory: uint8, all of it.  Who writes to a page first decides in which of several memories it lies.
    """

    def __init__(self, nbytes: int) -> None:
        self.memory = aligned_memory(nbytes)
        self._taken = 0

    def take(self, nbytes: int) -> NDArray[np.uint8]:
        """The next nbytes, aligned.  Raises ValueError where too little is left."""
        start = self._taken
        if start + nbytes > self.memory.size:
            raise ValueError(f"{nbytes} bytes asked of an arena that has {self.memory.size - start} left")
        self._taken += aligned(nbytes)
        return self.memory[start : start + nbytes]
