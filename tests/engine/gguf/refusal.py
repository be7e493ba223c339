"""Opening a file that must be refused: by the reader, and by `causerie info` as a person sees it."""

from __future__ import annotations

import contextlib
import io
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.__main__ import run_program
from engine.errors import ModelFileError, UnsupportedModelError
from engine.gguf.reader import GGUFFile

MEMORY_LIMIT = 64 << 20
TIME_LIMIT = 1.0


@contextlib.contextmanager
def bounded(time_limit: float = TIME_LIMIT) -> Iterator[None]:
    """Fails where what is done inside takes more time or memory.  Tracing slows down allocations."""
    tracemalloc.start()
    started = time.process_time()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < time_limit


def refused(folder: Path, content: bytes, time_limit: float = TIME_LIMIT) -> str:
    """The title of the error that opening such a file raises."""
    path = folder / "hostile model.gguf"
    path.write_bytes(content)
    title = refused_path(path, time_limit)
    assert path.name in title and str(folder) not in title
    return title


def refused_path(path: Path, time_limit: float = TIME_LIMIT) -> str:
    """The same for a file that is there."""
    with bounded(time_limit), pytest.raises((ModelFileError, UnsupportedModelError)) as caught:
        GGUFFile.open(path)
    title = caught.value.title
    assert caught.value.advice
    with bounded(time_limit):
        assert error_of_info(path) == [f"error: {title}", caught.value.advice]
    return title


def error_of_info(path: Path) -> list[str]:
    """The lines that `causerie info` writes for a file that it refuses."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run_program(["info", str(path), "--backend", "fake"])
    assert (status, out.getvalue()) == (1, "")
    return err.getvalue().splitlines()
