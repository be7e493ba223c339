"""How fast this machine reads memory: the limit of writing, since each token needs all the weights once.

Several threads look for the largest number in their parts of one large array.  NumPy does that with vector
instructions and without the interpreter's lock, one pass from front to back, as plain as reading gets.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ARRAY_BYTES = 512 << 20
"""Far more than any cache holds."""
PASSES = 8


def memory_bandwidth(threads: int, n_bytes: int = ARRAY_BYTES, passes: int = PASSES) -> float:
    """Bytes per second that so many threads read together: the best of some passes.

    The best, since whatever else runs on the machine can only take away.  Raises MemoryError.
    """
    # Written to: pages of zeros that nobody touched would all be one page.
    numbers = np.arange(n_bytes // 4, dtype=np.int32)
    parts = np.array_split(numbers, threads)
    best = float("inf")
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(passes):
            started = time.perf_counter()
            list(pool.map(np.max, parts))
            best = min(best, time.perf_counter() - started)
    return numbers.nbytes / best
