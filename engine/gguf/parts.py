"""A model in several files: how its parts are called, and how they are found from any of them.

Parts are called ``name-00001-of-00003.gguf``, counted from 1 (the convention of llama.cpp's `gguf-split`).
"""

from __future__ import annotations

import re
from pathlib import Path

_PART_NAME = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.IGNORECASE
)


def part_path(path: Path, index: int, n_parts: int) -> Path:
    """The path of part index (from 0) of the model that path would be in one file."""
    stem = path.stem if path.suffix.lower() == ".gguf" else path.name
    suffix = path.suffix if path.suffix.lower() == ".gguf" else ".gguf"
    return path.with_name(f"{stem}-{index + 1:05d}-of-{n_parts:05d}{suffix}")


def whole_path(path: Path) -> Path | None:
    """``name.gguf`` for the path of a part; None where the name is not that of a part."""
    match = _PART_NAME.fullmatch(path.name)
    return path.with_name(match["stem"] + match["suffix"]) if match else None
