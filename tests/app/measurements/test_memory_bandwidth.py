"""Bytes over seconds, and every byte read by some thread."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from app.measurements import memory_bandwidth as module
from app.measurements.memory_bandwidth import memory_bandwidth


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_best_pass_over_all_bytes(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """A clock on which the three passes take 4, 1 and 2 seconds."""
    times = itertools.accumulate([0, 4, 10, 1, 10, 2])
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(times)))
    read, lock = [], threading.Lock()

    def read_part(part: np.ndarray) -> np.int32:
        with lock:
            read.append(part.nbytes)
        return np.int32(0)

    monkeypatch.setattr(module.np, "max", read_part)
    assert memory_bandwidth(threads, 12_000, passes=3) == 12_000
    assert len(read) == 3 * threads
    assert sum(read) == 3 * 12_000


def test_with_the_real_clock() -> None:
    assert 1e6 < memory_bandwidth(2, 1 << 20, passes=2) < 1e13
