"""Opening a file that must be refused."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.reader import GGUFFile

MEMORY_LIMIT = 64 << 20
TIME_LIMIT = 1.0


def refused(folder: Path, content: bytes, time_limit: float = TIME_LIMIT) -> str:
    """The title of the error that opening such a file raises.  Tracing slows down allocations."""
    path = folder / "hostile model.gguf"
    path.write_bytes(content)
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises((ModelFileError, UnsupportedModelError)) as caught:
            GGUFFile.open(path)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < time_limit
    title = caught.value.title
    assert path.name in title and caught.value.advice
    assert str(folder) not in title
    return title
