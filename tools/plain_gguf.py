"""Reads a GGUF header the plain way, trusting it: the truth that the checked reader is compared with.

Fields are read one after the other as the public GGUF specification (version 2 and 3) lists them, and their
places are noted, so that a fuzzer knows where the numbers stand that everything depends on.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
"""Value type -> struct format of a number."""
STRING, ARRAY = 8, 9


@dataclass
class PlainHeader:
    """What stands in the file.

    metadata: key -> (type, element type or None, value); strings are bytes, arrays lists.
    tensors: name -> (lengths in the order of the file, type, offset).
    records: of the start, each key and each tensor the (position, size) of every count, length, type and
    number, in bytes.
    end: where the header ends.
    """

    version: int = 0
    metadata: dict[bytes, tuple[int, int | None, Any]] = field(default_factory=dict)
    tensors: dict[bytes, tuple[list[int], int, int]] = field(default_factory=dict)
    records: list[list[tuple[int, int]]] = field(default_factory=lambda: [[]])
    end: int = 0


def read_plainly(content: bytes | bytearray) -> PlainHeader:
    """The header at the beginning of content.  Raises struct.error or KeyError where it is none."""
    return _Reading(content).header()


class _Reading:
    def __init__(self, content: bytes | bytearray) -> None:
        self.content = content
        self.position = 4
        self.found = PlainHeader()

    def header(self) -> PlainHeader:
        found = self.found
        found.version = self.number("I")
        n_tensors, n_keys = self.number("Q"), self.number("Q")
        for _ in range(n_keys):
            found.records.append([])
            key, type = self.string(), self.number("I")
            element_type = self.number("I") if type == ARRAY else None
            if element_type is None:
                value: Any = self.value(type)
            else:
                value = [self.value(element_type) for _ in range(self.number("Q"))]
            found.metadata[key] = type, element_type, value
        for _ in range(n_tensors):
            found.records.append([])
            name = self.string()
            lengths = [self.number("Q") for _ in range(self.number("I"))]
            found.tensors[name] = lengths, self.number("I"), self.number("Q")
        found.end = self.position
        return found

    def value(self, type: int) -> Any:
        return self.string() if type == STRING else self.number(NUMBERS[type])

    def number(self, format: str) -> Any:
        size = struct.calcsize(format)
        (value,) = struct.unpack_from("<" + format, self.content, self.position)
        self.found.records[-1].append((self.position, size))
        self.position += size
        return value

    def string(self) -> bytes:
        length = self.number("Q")
        start = self.position
        self.position += length
        if self.position > len(self.content):
            raise struct.error("a string reaches beyond the end")
        return bytes(self.content[start : self.position])
