"""Opens a model: one GGUF file, or all parts of a model in several files, whichever part was chosen."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from engine.errors import ModelFileError
from engine.gguf.header import OneFile
from engine.gguf.layout import TENSOR_COUNT_KEY
from engine.gguf.parts import open_parts
from engine.tensor import Tensor


class GGUFFile:
    """An open model.  Use as a context manager, or call `close`.

    path: what was opened; paths: its files, several for a model in parts; size: bytes of them together.
    version, alignment (bytes), metadata: of the first file.
    tensors: of all files, by name, in their order, each with its shape in NumPy order and ``data`` a
    read-only uint8 view of the map.
    """

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> GGUFFile:
        """Maps and checks the file, and where it is a part of a model all the others.

        Raises ModelFileError (missing, unreadable, damaged, no GGUF, parts that lack or do not fit) or
        UnsupportedModelError (a newer version, an unknown tensor type).
        """
        return cls(Path(path))

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tensors: dict[str, Tensor] = {}
        self._files = open_parts(path)
        try:
            self._read_tensors()
        except BaseException:
            self.close()
            raise
        first = self._files[0]
        self.version, self.alignment, self.metadata = first.version, first.alignment, first.metadata
        self.paths = tuple(file.path for file in self._files)
        self.size = sum(file.size for file in self._files)

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of files and maps.  The data of tensors taken before stays readable: their map lives on."""
        self.tensors = {}
        for file in self._files:
            file.close()

    def require_whole(self) -> None:
        """Raises ModelFileError where a file has become shorter since it was opened.

        Asked before anything touches the maps: that would end this process (SIGBUS).  Whoever reads data can
        do so beside the map (`Tensor.read_rows`), which needs no such question.
        """
        for file in self._files:
            file.require_whole()

    def _read_tensors(self) -> None:
        origin: dict[str, OneFile] = {}
        for file in self._files:
            for name, tensor in file.read_tensors().items():
                if name in origin:
                    raise ModelFileError(
                        f"The tensor {name} stands in both {origin[name].path.name} and {file.path.name}."
                    )
                origin[name] = file
                self.tensors[name] = tensor
        if len(self._files) > 1:
            metadata = self._files[0].metadata
            total = metadata.get_int(TENSOR_COUNT_KEY, len(self.tensors))
            if total != len(self.tensors):
                raise ModelFileError(
                    f"{metadata.file_name}: {TENSOR_COUNT_KEY} is {total}, "
                    f"but its {len(self._files)} parts hold {len(self.tensors)} tensors."
                )
