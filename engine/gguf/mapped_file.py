"""A file that is mapped, and can be read beside the map.

If another process cuts the file short, touching the missing part of the map ends this process (SIGBUS), while
reading it is an error like any other.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError
from engine.gguf.recognise import check_magic

_FULL = frozenset({errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What the system lacks, which says nothing about the file."""


class MappedFile:
    """name, as messages call it; size, bytes of the map; map: read-only."""

    @classmethod
    def open(cls, path: Path) -> MappedFile:
        """Raises ModelFileError where the path is no regular file that can be read."""
        return cls(path.name, *_open_and_map(path))

    def __init__(self, name: str, file: io.FileIO, map: mmap.mmap) -> None:
        self.name = name
        self._file = file
        self.map = map
        self.size = len(map)

    def close(self) -> None:
        """Lets go of file and map.  Arrays that were taken of the map before keep it alive."""
        self._file.close()
        with contextlib.suppress(BufferError):
            self.map.close()

    def read(self, start: int, out: NDArray[np.uint8]) -> None:
        """Fills uint8[bytes] with the file's bytes from start on, without the map.  Raises ModelFileError."""
        rest = out.data
        try:
            self._file.seek(start)
            while rest.nbytes:
                count = self._file.readinto(rest)
                if not count:
                    raise self._shorter()
                rest = rest[count:]
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{self.name} can no longer be read: {error}.") from error

    def require_whole(self) -> None:
        """Raises ModelFileError where the file has become shorter than its map.  Works after `close`, too."""
        try:
            size = self.map.size()
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{self.name} can no longer be read: {error}.") from error
        if size < self.size:
            raise self._shorter()

    def _shorter(self) -> ModelFileError:
        return ModelFileError(f"{self.name} has become shorter while it was being read.")


@dataclass(frozen=True, slots=True)
class Span:
    """A tensor's place in a file: from byte start on.  See `engine.tensor.FileSource`."""

    file: MappedFile
    start: int

    def read(self, offset: int, out: NDArray[np.uint8]) -> None:
        self.file.read(self.start + offset, out)

    def require_whole(self) -> None:
        self.file.require_whole()


def _open_and_map(path: Path) -> tuple[io.FileIO, mmap.mmap]:
    """Opens and maps a regular file of at least one byte, read-only."""
    try:
        if path.is_dir():
            raise ModelFileError(
                f"{path.name or path} is a folder, not a model file.", "Choose a file in it."
            )
        # Non-blocking: opening a pipe would otherwise wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = io.FileIO(os.open(path, flags))
        try:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ModelFileError(f"{path.name} is a pipe or a device, not a model file.")
            if status.st_size == 0:
                check_magic(b"", path.name)
            return file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except BaseException:
            file.close()
            raise
    except FileNotFoundError as error:
        raise ModelFileError(f"There is no file {path}.", "Check its name and folder.") from error
    except PermissionError as error:
        raise ModelFileError(
            f"{path.name} may not be read: permission denied.", "Change its permissions, or copy it."
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        advice = "Close other programs, then try again." if getattr(error, "errno", 0) in _FULL else ""
        raise ModelFileError(f"{path.name} cannot be read: {reason}.", advice) from error
