"""Moving memory to huge pages leaves its content alone, and where the system can, the pages are huge."""

from __future__ import annotations

import platform
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backends.cpu.arena import Arena, aligned_memory
from engine.backends.cpu.huge_pages import HUGE_PAGE, HugePages, avoid_huge_pages

COUNTS = np.arange(40 << 20, dtype=np.uint32).astype(np.uint8)
"""Forty MB that repeat every 256 bytes only."""


def huge_bytes(memory: NDArray[np.uint8]) -> int:
    """In huge pages, of the mapping that the middle of memory lies in."""
    middle = memory.ctypes.data + memory.size // 2
    inside = False
    for line in Path("/proc/self/smaps").read_text(encoding="ascii", errors="replace").splitlines():
        if mapping := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(mapping[1], 16) <= middle < int(mapping[2], 16)
        elif inside and line.startswith("AnonHugePages"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the memory is not mapped")


def can_collapse() -> bool:
    """Linux 6.1 or later, with huge pages of 2 MB that nobody has switched off."""
    folder = Path("/sys/kernel/mm/transparent_hugepage")
    if sys.platform != "linux" or not folder.exists():
        return False
    release = tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])
    size = int((folder / "hpage_pmd_size").read_text())
    return release >= (6, 1) and size == HUGE_PAGE and "[never]" not in (folder / "enabled").read_text()


@pytest.mark.skipif(not can_collapse(), reason="needs Linux 6.1 or later, and huge pages of 2 MB")
def test_pages_are_small_at_first_and_huge_later() -> None:
    memory = aligned_memory(COUNTS.size)
    avoid_huge_pages(memory)
    memory[:] = COUNTS
    assert huge_bytes(memory) == 0
    moving = HugePages(memory, delay=0)
    moving.wait()
    assert huge_bytes(memory) > COUNTS.size / 2
    moving.stop()
    np.testing.assert_array_equal(memory, COUNTS)


def test_content_can_be_read_while_it_is_moved() -> None:
    memory = aligned_memory(COUNTS.size)
    memory[:] = COUNTS
    moving = HugePages(memory, delay=0)
    for _ in range(5):
        np.testing.assert_array_equal(memory, COUNTS)
    moving.stop()
    np.testing.assert_array_equal(memory, COUNTS)


def test_stopping_ends_the_thread() -> None:
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
    HugePages(memory, delay=0).wait()
    assert (memory == 7).all()


def test_a_system_without_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    memory = aligned_memory(3 * HUGE_PAGE)
    avoid_huge_pages(memory)
    memory[:] = 7
    HugePages(memory, delay=0).wait()
    assert (memory == 7).all()


def test_parts_of_an_arena() -> None:
    arena = Arena(1000)
    first, second = arena.take(100), arena.take(3)
    assert (first.size, second.size) == (100, 3)
    assert first.ctypes.data % 64 == 0 and second.ctypes.data - first.ctypes.data == 128
    with pytest.raises(ValueError, match="808 left"):
        arena.take(809)
    assert arena.take(808).size == 808


def test_stopping_does_not_wait_for_the_beginning() -> None:
    memory = aligned_memory(COUNTS.size)
    moving = HugePages(memory, delay=3600)
    moving.stop()
    moving.wait()
