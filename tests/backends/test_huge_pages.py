"""Moving memory to huge pages leaves its content alone, and where the system can, the pages are huge."""

from __future__ import annotations

import platform
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from engine.backends.cpu import huge_pages
from engine.backends.cpu.arena import Arena, aligned_memory
from engine.backends.cpu.huge_pages import HUGE_PAGE, HugePages, avoid_huge_pages

COUNTS = np.arange(40 << 20, dtype=np.uint32).astype(np.uint8)
"""Forty MB that repeat every 256 bytes only."""


def huge_bytes() -> int:
    lines = Path("/proc/self/smaps").read_text(encoding="ascii", errors="replace").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("AnonHugePages"))


@pytest.mark.skipif(
    sys.platform != "linux" or platform.release().split(".")[0] < "6", reason="needs Linux 6.1 or later"
)
def test_pages_are_small_at_first_and_huge_later() -> None:
    memory = aligned_memory(COUNTS.size)
    avoid_huge_pages(memory)
    before = huge_bytes()
    memory[:] = COUNTS
    assert huge_bytes() - before < HUGE_PAGE
    moving = HugePages(memory)
    moving.wait()
    assert huge_bytes() - before > COUNTS.size / 2
    moving.stop()
    np.testing.assert_array_equal(memory, COUNTS)


def test_content_can_be_read_while_it_is_moved() -> None:
    memory = aligned_memory(COUNTS.size)
    memory[:] = COUNTS
    moving = HugePages(memory)
    for _ in range(5):
        np.testing.assert_array_equal(memory, COUNTS)
    moving.stop()
    np.testing.assert_array_equal(memory, COUNTS)


def test_stopping_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huge_pages, "REST", 10**9)
    threads = threading.active_count()
    moving = HugePages(aligned_memory(COUNTS.size))
    moving.stop()
    moving.stop()
    assert threading.active_count() == threads


@pytest.mark.parametrize("nbytes", [0, 1, 4096, HUGE_PAGE + 5])
def test_memory_smaller_than_a_page(nbytes: int) -> None:
    memory = aligned_memory(nbytes)
    avoid_huge_pages(memory)
    memory[:] = 7
    HugePages(memory).wait()
    assert (memory == 7).all()


def test_a_system_without_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    memory = aligned_memory(3 * HUGE_PAGE)
    avoid_huge_pages(memory)
    memory[:] = 7
    HugePages(memory).wait()
    assert (memory == 7).all()


def test_parts_of_an_arena() -> None:
    arena = Arena(1000)
    first, second = arena.take(100), arena.take(3)
    assert (first.size, second.size) == (100, 3)
    assert first.ctypes.data % 64 == 0 and second.ctypes.data - first.ctypes.data == 128
    with pytest.raises(ValueError, match="808 left"):
        arena.take(809)
    assert arena.take(808).size == 808
