"""What tests of quantised files look at: headers read by a reader that shares nothing with the engine's."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from engine.gguf.reader import GGUFFile
from engine.gguf.tensor_types import TYPES_BY_NUMBER
from engine.quantisation.dequantise import dequantise
from tools.plain_gguf import PlainHeader, read_plainly

ADDED = {b"general.file_type", b"general.quantization_version"}
"""Keys that quantising writes."""


class Written(NamedTuple):
    """A header, and where the data begins."""

    header: PlainHeader
    data_start: int

    @classmethod
    def read(cls, path: Path) -> Written:
        header = read_plainly(path.read_bytes())
        alignment = header.metadata.get(b"general.alignment", (4, None, 32))[2]
        return cls(header, -(-header.end // alignment) * alignment)

    @property
    def types(self) -> dict[str, str]:
        return {
            name.decode(): TYPES_BY_NUMBER[number].name
            for name, (_, number, _) in self.header.tensors.items()
        }

    @property
    def metadata(self) -> dict[bytes, object]:
        return {key: value for key, value in self.header.metadata.items() if key not in ADDED}


def values_of(path: Path) -> dict[str, np.ndarray]:
    with GGUFFile.open(path) as file:
        return {name: dequantise(tensor) for name, tensor in file.tensors.items()}


def only(folder: Path, *names: str) -> bool:
    return sorted(path.name for path in folder.iterdir()) == sorted(names)
